"""Layers hang in a plain list or dict, where torch does not see them.

What it detects
    A called model has modules or trainable tensors in plain lists, dicts or attributes. They receive gradients, no optimizer
    holds them, and they have not moved.
Why it matters
    `model.parameters()` does not contain them: they are not trained, not saved, not moved to the device.
How it is confirmed
    By the parameters: gradient in every window, movement none.
How to cure it
    `nn.ModuleList`, `nn.ModuleDict`, `nn.Parameter`.
When it is wrong
    A teacher that is hidden in a list on purpose gets no gradient; layers that the program hands to the optimizer itself are held.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count


@cause_rule(
    "stall/unregistered-modules", settled_by=("optimizer-owns-all",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/inputs-and-targets-misaligned", "stall/params-not-in-optimizer"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for model in chart.models.values():
        lost = []
        for path, kind, size, at, numbers in model.plain:
            hidden = [chart.parameters[n] for n in numbers if n in chart.parameters]
            orphans = [p for p in hidden if not p.owners and p.with_gradient and not p.moved]
            if hidden and len(orphans) == len(hidden):
                lost.append((path, kind, size, at, orphans))
        if not lost:
            continue
        parameters = [p for row in lost for p in row[4]]
        if max(p.looks for p in parameters) < 3:
            return Missing("three windows with a backward")
        places = list(dict.fromkeys(place(row[3]) for row in lost if row[3]))
        caller = Spot(model.at, f"{model.holder} calls them here") if model.holder and model.at else None
        return Seen(
            title=f"{count(lost, 'layer')} of {model.holder or model.kind} {'is' if len(lost) == 1 else 'are'} invisible to torch and never trained",
            where=[*(Spot(at, "not registered: a plain list, dict or attribute holds it") for at in places[:3] if at), *([caller] if caller else [])]
            or [Spot(model.at, "the model that is called here") if model.at else None],
            evidence=[
                f"{', '.join(f'{row[0]} ({row[1]})' for row in lost[:4])}: gradient in every window looked at, moved by 0",
                f"{sum(row[2] for row in lost):,} numbers, in no list that `parameters()` gives",
            ],
            step=3,
            statement="the layers are kept where nn.Module does not look",
            advice=["Use nn.ModuleList, nn.ModuleDict or nn.Parameter."],
            look_for="" if places else "tensor-attribute",
        )
    return None
