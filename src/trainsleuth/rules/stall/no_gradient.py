"""Layers that run in training get no gradient: the graph is cut behind them.

What it detects
    Parameters that are trainable, held by an optimizer, and part of a module that was called in a training forward never had a
    gradient in three windows, while others did. The deep window names the cut: `.detach()`, `.data`, `.item()`, numpy, `no_grad`.
    If the whole graph is cut, torch raises; then the line is named all the same. Or their gradient is exactly zero in every look, behind an
    operation without a slope (sign, round, floor), or, of all that an optimizer trains, for no such reason: then it is multiplied by zero.
Why it matters
    The layers stay as they were initialised, and the rest learns on top of random features.
How it is confirmed
    By the graph of the loss, which does not contain the module's output.
How to cure it
    Remove the cut. If it is meant, set `requires_grad=False` and leave the layers out of the optimizer.
When it is wrong
    Heads that are not called in training, stop-gradient branches whose layers get a gradient elsewhere, and weights that were
    loaded and run under `no_grad` on purpose: the first two are silent, the last is a note. So is a small part of a model whose
    output nobody uses, unless the loss stands still.
"""

from collections.abc import Sequence
from typing import Any

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Parameter, Place, place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import count, elements, names

ModulePath = tuple[str | None, str]  # the model that was called, and the path of the module in it
MINOR = 0.3  # share of the trainable numbers: models often compute a little more than a loss uses (a last update, a pooled output)
MANY_ZEROS = 20  # windows of an optimizer: something that starts at zero has moved by then
NO_GRAPH = "does not require grad and does not have a grad_fn"
WORDS = {
    "detach": "`.detach()` cuts the graph here", "detach_": "`.detach_()` cuts the graph here",
    "data": "`.data` leaves the graph here", "item": "`.item()` leaves the graph here",
    "numpy": "numpy leaves the graph here", "__array__": "numpy leaves the graph here", "tolist": "`.tolist()` leaves the graph here",
    "no_grad": "`no_grad` is on here",
}  # fmt: skip


@cause_rule(
    "stall/no-gradient", settled_by=("graph-kept",), explains=("stall/flat-loss", "stall/uniform-predictions", "crash/exception"),
    masks=("stall/inputs-and-targets-misaligned", "stall/accumulated-gradients-discarded", "crash/known"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    if chart.crash is not None and NO_GRAPH in chart.crash["message"]:
        frames = [place(frame) for frame in chart.crash["frames"]]
        return Seen(
            title="the loss has no graph: backward has nothing to follow",
            where=[Spot(frames[-1], "this loss was computed without gradients")] if frames and frames[-1] else [],
            evidence=[chart.crash["message"][:160]],
            statement="the graph is cut before the loss, or every parameter is frozen",
            advice=["Look for `.detach()`, `.item()`, `no_grad` or frozen parameters between the model and the loss."],
        )
    never_traced = _only_without_gradients(chart) or _behind_steps(chart) or _times_zero(chart)
    if never_traced is not None:
        return never_traced
    silent = [
        p for p in chart.called_parameters()
        if p.trainable and p.owners and p.looks and p.without_gradient == p.looks
    ]  # fmt: skip
    if not silent:
        return None
    if not any(p.with_gradient for p in chart.parameters.values()):
        return None
    if max(p.looks for p in silent) < 3:
        return Missing("three windows with a backward")
    if chart.compiled is not None or not chart.deep:
        return Missing("a deep window, which shows whether these layers run in training (nothing may be compiled)")
    ran = _calls_without_reach(chart)
    lost = {p.number: module for p in silent for module in _modules_of(p) if module in ran}
    cut = [p for p in silent if p.number in lost]
    if not cut:
        return None
    meant = all(p.loaded for p in cut)
    at, words = _where_cut(chart, set(lost.values()))
    modules = list(dict.fromkeys(lost.values()))
    shown = [path or chart.models[model or ""].kind for model, path in modules]
    called_at = place(ran[modules[0]][4])
    behind = None if at else _no_grad_behind(chart, set(lost.values()))
    if at is None and elements(cut) < MINOR * elements([p for p in chart.called_parameters() if p.trainable]):
        now = standing(chart)
        meant = meant or isinstance(now, str) or not now.stuck
    return Seen(
        title=f"{count(cut, 'parameter')} of layers that run in training never get a gradient"
        + ("" if at else ": no path leads from their output to the loss"),
        where=[
            Spot(at, words) if at else None,
            Spot(behind, "`no_grad` is on here, behind these layers") if behind else None,
            Spot(called_at, "called here") if called_at else None,
        ],
        evidence=[
            f"{names(cut)}: no gradient in {cut[0].looks} of {cut[0].looks} windows looked at, {elements(cut):,} numbers",
            f"the graph of the loss does not contain the output of {', '.join(shown[:3])}",
        ],
        severity="note" if meant else "critical",
        step=3,
        statement="the graph is cut between these layers and the loss"
        if at
        else "nothing that reaches the loss uses these layers",
        advice=["Remove the cut; if it is meant, freeze the layers and leave them out of the optimizer."],
    )


def _behind_steps(chart: ProcessChart) -> Seen | None:
    """Gradients that are there and exactly zero, in every look, behind an operation that is flat (sign, round, floor)."""
    flat = [row for fact in chart.deep for row in fact.get("flat") or [] if row[1]]
    held = [p for p in chart.called_parameters() if p.trainable and p.owners]
    zero = [p for p in held if p.zero_gradient >= 3 and not p.with_gradient and len(p.shape) >= 2]
    if not flat or not zero or not any(p.with_gradient for p in held):
        return None
    name = flat[-1][0]
    lines = list(dict.fromkeys(spot for row in reversed(flat) if row[0] == name and (spot := place(row[1]))))
    return Seen(
        title=f"{count(zero, 'layer')} of the model get a gradient of exactly zero: `{name}` has no slope",
        where=[
            *[Spot(spot, f"the slope of `{name}` is zero, and the loss is computed from it") for spot in lines[:3]],
            *[Spot(p.made_at, "made here, and never trained") for p in zero[:1] if p.made_at],
        ],
        evidence=[
            f"{names(zero)}: a gradient of zeros in {zero[0].zero_gradient} of {zero[0].looks} windows looked at, {elements(zero):,} numbers",
            f"{count([p for p in held if p.with_gradient], 'other parameter')} get gradients",
        ],
        step=3,
        statement=f"`{name}` stands between these layers and the loss",
        advice=[f"Let the gradient pass straight through: y = x + (torch.{name}(x) - x).detach()."],
    )  # fmt: skip


def only_zeros(parameters: Sequence[Parameter]) -> bool:
    """Whether all of these get gradients, and only zeros, in every look."""
    return bool(parameters) and all(p.zero_gradient >= 3 and p.zero_gradient == p.looks for p in parameters)


def _times_zero(chart: ProcessChart) -> Seen | None:
    """All that an optimizer trains gets gradients that are exactly zero, in every look: what comes of it is multiplied by zero."""
    for optimizer in chart.optimizers.values():
        held = [p for number in optimizer.parameters if (p := chart.parameters.get(number)) is not None and p.trainable and p.model]
        whole = all(p.dtype in ("float32", "float64") for p in held) and not chart.scalers
        now = standing(chart)
        if not only_zeros(held) or not whole or optimizer.windows < MANY_ZEROS or isinstance(now, str) or not now.still:
            continue
        made = list(dict.fromkeys(p.made_at for p in held if p.made_at))
        return Seen(
            title=f"all {count(held, 'parameter')} that are trained get a gradient of exactly zero",
            where=[
                *[Spot(at, "made here, and has no effect on the loss") for at in made[:2]],
                *([Spot(optimizer.at, "this optimizer trains them")] if optimizer.at else []),
            ],
            evidence=[
                f"{names(held)}: a gradient of zeros in {held[0].zero_gradient} of {held[0].looks} windows looked at, {elements(held):,} numbers",
                "the graph leads from the loss to them, so a factor on the way is zero",
            ],
            step=3,
            statement="what these layers give is multiplied by zero on its way to the loss",
            advice=["Print the factors behind these layers: a scale that integer division makes 0, a gate or a loss weight of 0, an empty mask."],
        )
    return None


def _modules_of(parameter: Parameter) -> list[ModulePath]:
    """The module that holds it, in each model that was called."""
    return [(model, name.rpartition(".")[0]) for model, name in parameter.names.items()]


def _only_without_gradients(chart: ProcessChart) -> Seen | None:
    """A model whose parameters an optimizer holds, and that is only ever called under no_grad while others are trained."""
    for model in chart.models.values():
        held = [chart.parameters[n] for n in model.parameters if n in chart.parameters]
        owned = [p for p in held if p.owners and p.trainable and p.looks >= 3 and p.without_gradient == p.looks]
        calls = sum(model.calls.values())
        watched = sum(optimizer.watched for optimizer in chart.optimizers.values())
        with_grad = sum(n for (_, grad, _), n in model.calls.items() if grad)
        if not owned or len(owned) < len(held) or with_grad > 0.05 * calls or model.windows_without_grad < max(3, watched / 2):
            continue
        if not any(p.with_gradient for p in chart.parameters.values()):
            continue
        at = next((spot for (_, grad, _), spot in model.places.items() if not grad), None)
        return Seen(
            title=f"{model.kind} is only ever called without gradients, and the optimizer is meant to train it",
            where=[Spot(at, "called under `no_grad`") if at else None],
            evidence=[
                f"{names(owned)}: held by the optimizer, no gradient in {owned[0].looks} of {owned[0].looks} windows looked at",
                f"{calls - with_grad:,} of {calls:,} calls without gradients",
            ],
            severity="note" if all(p.loaded for p in owned) else "critical",
            step=3,
            statement="`no_grad` is on around a model that should learn",
            advice=["Take the call out of `no_grad`; if it is meant, leave the model out of the optimizer."],
            look_for="no_grad",
        )
    return None


def _calls_without_reach(chart: ProcessChart) -> dict[ModulePath, list[Any]]:
    """Modules that were called in a training forward and that no backward of a deep window reached; path to call row."""
    ran: dict[ModulePath, list[Any]] = {}
    reached: set[ModulePath] = set()
    for fact in chart.deep:
        for row in fact["calls"]:
            if row[7]:
                reached.add((row[16], row[2]))
            else:
                ran.setdefault((row[16], row[2]), row)
    return {path: row for path, row in ran.items() if path not in reached}


def _where_cut(chart: ProcessChart, paths: set[ModulePath]) -> tuple[Place | None, str]:
    """The cut that lies behind the unreached modules: by storage if it can be, else the first one after their call."""
    for fact in chart.deep:
        calls = {row[0]: row for row in fact["calls"]}
        lost = [row for row in fact["calls"] if (row[16], row[2]) in paths]
        if not lost:
            continue
        family = {row[0] for row in lost}
        for row in lost:
            parent = row[1]
            while parent in calls and not calls[parent][7]:
                family.add(parent)
                parent = calls[parent][1]
        if not all(row[5] for row in lost):
            first = min(row[0] for row in lost if not row[5])
            entered = [cut for cut in fact["cuts"] if cut[0] == "no_grad" and cut[2] <= first and cut[1]]
            if entered:
                return place(entered[-1][1]), WORDS["no_grad"]
        last = max(family)
        cuts = [cut for cut in fact["cuts"] if cut[1] and not any(cut[5:6])]  # what is part of the loss's graph was only looked at (`loss.item()`)
        exact = [cut for cut in cuts if cut[3] in family]
        later = [
            cut for cut in cuts
            if cut[2] > last and (cut[0] != "no_grad" or cut[4])  # of `no_grad`, a function that was given a graph
            and (len(cut) < 7 or cut[6] is None or family & set(cut[6]))  # and what is taken out was computed from the output of these layers
        ]  # fmt: skip
        for cut in (*exact[-1:], *later[:1]):
            return place(cut[1]), WORDS.get(cut[0], "the graph is cut here")
    return None, ""


def _no_grad_behind(chart: ProcessChart, paths: set[ModulePath]) -> Place | None:
    """The first block without gradients that is entered after the layers ran; what is computed in it is not known."""
    for fact in chart.deep:
        lost = [row[0] for row in fact["calls"] if (row[16], row[2]) in paths]
        entered = [cut for cut in fact["cuts"] if lost and cut[0] == "no_grad" and cut[1] and cut[2] > max(lost) and not any(cut[5:6])]
        if entered:
            return place(entered[0][1])
    return None
