"""Most of the model is frozen, and what is left cannot learn the task.

What it detects
    The loss stands still at chance, the gradients that exist are applied, and more than half of the model's numbers have
    `requires_grad=False`. The line that froze them is named. Also parameters that stay frozen though a line means to free them: it sets
    `requires_grad = True` on the module, which only makes an attribute that torch never reads.
Why it matters
    A name filter that matches too much (or too little) freezes layers that were meant to learn. Everything runs.
How it is confirmed
    A trial in which the freezing line has no effect (knob `unfreeze`): the layers move, and the loss falls.
How to cure it
    Freeze by module, not by a pattern in names; print the names that are left trainable. A module is freed by
    `module.requires_grad_(True)`, a call.
When it is wrong
    LoRA, linear probes and frozen towers freeze most of a model on purpose; they learn, so there is no symptom to explain and
    the rule is silent. Weights that are frozen at random and never loaded are worth a note all the same.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Parameter, place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.stall.no_gradient import only_zeros
from trainsleuth.rules.standing import Standing, standing
from trainsleuth.rules.wording import count, elements, names

SOME = 0.01  # of the model: a single bias that stays frozen is nobody's sickness


@cause_rule(
    "stall/params-frozen", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("unfreeze",),
    masks=("stall/inputs-and-targets-misaligned", "stall/input-ignored"), structural=False,
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    called = chart.called_parameters()
    frozen = [p for p in called if not p.trainable]
    now = standing(chart)
    in_vain = _freed_in_vain(chart, frozen, now)
    if in_vain is not None:
        return in_vain
    if not frozen or elements(frozen) < 0.5 * elements(called):
        return None
    random = [p for p in frozen if not p.loaded and not p.moved]
    stuck = not isinstance(now, str) and now.stuck
    never_loaded = not chart.weights_files and elements(random) >= 0.5 * elements(called)
    if not stuck and not (never_loaded and chart.windows >= 3):
        return Missing(now) if isinstance(now, str) else None
    places = {p.frozen_at for p in frozen if p.frozen_at}
    largest = sorted(places, key=lambda at: -elements([p for p in frozen if p.frozen_at == at]))
    left = [p for p in called if p.trainable]
    if only_zeros(left):
        return None  # it is not what is frozen that keeps the rest from learning
    return Seen(
        title=f"{_share(frozen, called)} of the model is frozen"
        + (", and the rest does not learn" if stuck else " at its random start"),
        where=[Spot(at, "freezes " + count([p for p in frozen if p.frozen_at == at], "parameter")) for at in largest[:3]]
        or [model.at for model in chart.models.values()][:1],
        evidence=[
            f"frozen: {names(_one_of_each_part(frozen))}, {count(elements(frozen), 'number')}"
            + (f"; {count(random, 'parameter')} of them never loaded from anywhere, so they stay random" if random else ""),
            f"left to train: {names(left) or 'nothing'}, {count(elements(left), 'number')}",
        ],
        severity="critical" if stuck else "note",
        step=chart.windows,
        statement="layers that should learn are frozen",
        advice=["Freeze by module instead of by a pattern in names, and print what is left trainable."],
        certain=False,
        look_for="" if largest else "frozen",
    )


def _one_of_each_part(parameters: list[Parameter]) -> list[Parameter]:
    """The same parameters, those first that stand for a part of the model each: the first few names should tell what is frozen."""
    parts: dict[str, Parameter] = {}
    for parameter in parameters:
        words = parameter.name.split(".")
        parts.setdefault(".".join(words[: 2 if len(words) > 2 else 1]), parameter)
    standing_for = {parameter.number for parameter in parts.values()}
    return [*parts.values(), *(parameter for parameter in parameters if parameter.number not in standing_for)]


def _freed_in_vain(chart: ProcessChart, frozen: list[Parameter], now: Standing | str) -> Seen | None:
    """A line sets `requires_grad = True` on a module: torch knows no such attribute, and the parameters stay as they are."""
    for at in dict.fromkeys(place(fact["at"]) for fact in chart.switched if fact["value"]):
        if at is None:
            continue
        facts = [fact for fact in chart.switched if fact["value"] and place(fact["at"]) == at]
        meant = {number for fact in facts for number in fact["params"]}
        still = [p for p in frozen if p.number in meant and not p.moved]
        if not still or elements(still) < SOME * elements(chart.called_parameters()):
            continue
        kinds = ", ".join(dict.fromkeys(fact["kind"] for fact in facts))
        freezes = sorted({p.frozen_at for p in still if p.frozen_at})
        return Seen(
            title=f"{count(still, 'parameter')} stay frozen: the line that means to free them sets an attribute that torch never reads",
            where=[
                Spot(at, f"sets an attribute of the {kinds}, not of its parameters"),
                *[Spot(line, "freezes " + count([p for p in still if p.frozen_at == line], "parameter")) for line in freezes[:2]],
            ],
            evidence=[
                f"still frozen after that line: {names(still)}, {_share(still, chart.called_parameters())} of the model's numbers; none has moved",
                "a module has no `requires_grad`; `requires_grad_(True)`, with the underscore, is a call and sets it on every parameter",
            ],
            severity="critical" if not isinstance(now, str) and now.stuck else "warning",
            step=chart.windows,
            statement="layers that should learn are frozen",
            advice=["Call `requires_grad_(True)` on the module instead of setting `requires_grad`."],
        )
    return None


def _share(part: list[Parameter], whole: list[Parameter]) -> str:
    """A percentage that never says 100 % of what is not all."""
    share = elements(part) / elements(whole)
    return f"{100 * share:.0f} %" if share < 0.995 or share == 1 else f"{100 * min(share, 0.99999):.3f} %"
