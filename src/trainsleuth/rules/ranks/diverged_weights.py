"""The ranks train models with different weights.

What it detects
    At the same step the ranks apply the same gradient (so it is averaged) to weights that are not the same. Or the model is wrapped in
    DDP, no forward goes through the wrapper, and gradients and weights of the ranks differ: nothing is averaged at all. Or a part of what is
    trained is not wrapped, began equal on all ranks, and drifts apart while the wrapped part stays the same.
Why it matters
    Each rank trains another model with the others' gradients. The loss of one rank may look fine; what is saved is one of several.
How it is confirmed
    By the norms of gradients and weights that each rank records in the same windows; no collective of ours is added to the program. A trial
    begins with the weights of rank 0 and averages the gradients before each step (knob `gradients-shared`).
How to cure it
    Broadcast the weights after they are made or loaded (DDP does when it is built: load before wrapping, or load on every rank). Call
    the DDP model itself, never a method of `model.module`, in training.
When it is wrong
    Parallel experts and pipeline stages differ on purpose: their gradients differ as well, and nothing is said.
"""

from trainsleuth.case.entries import Place, place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, run_rule
from trainsleuth.rules.side_by_side import Rank, close, ranks_of
from trainsleuth.rules.wording import number

SAME_GRADIENT = 1e-5
OTHER_WEIGHT = 1e-3
ENOUGH = 3


@run_rule("ranks/diverged-weights", explains=("stall/flat-loss",), settled_by=("gradients-shared",))
def rule(run: RunChart) -> Verdict:
    ranks = ranks_of(run)
    for other in ranks[1:]:
        differing = _differing(ranks[0], other)
        if len(differing) < ENOUGH:
            continue
        window, parameters = next(iter(differing.items()))
        shown = [_name(ranks[0], key) for key in parameters[:4]]
        return Seen(
            title=f"ranks 0 and {other.number} hold different weights and share their gradients",
            where=[Spot(at, note) for at, note in _suspects(ranks[0], other)],
            evidence=[
                f"{len(parameters)} parameters with equal gradients and unequal weights in window {window:,}: {', '.join(shown)}",
                f"so it was in {len(differing)} of {len(set(ranks[0].chart.looks) & set(other.chart.looks))} windows looked at on both ranks",
            ],
            statement="the weights were not made equal before training, or were changed on one rank only",
            advice=[
                "Load or make the weights before wrapping the model in DDP, load them on every rank, or broadcast them once."
            ],
            step=window,
        )
    return _past_the_wrapper(ranks) or _outside_the_wrapper(ranks)


def _past_the_wrapper(ranks: list[Rank]) -> Verdict:
    """The model is wrapped in DDP, and something else than the wrapper is called: each rank trains for itself."""
    if len(ranks) < 2 or any(not rank.chart.ddp or _calls_wrapper(rank) for rank in ranks):
        return None
    one, other = ranks[:2]
    apart = [window for window in sorted(set(one.chart.looks) & set(other.chart.looks)) if _both_differ(one, other, window)]
    if len(apart) < ENOUGH:
        return None
    wrapped = [at for fact in one.chart.ddp if (at := place(fact["at"]))]
    called = [at for model in one.chart.models.values() for (_, grad, _), at in model.places.items() if grad and at]
    return Seen(
        title="each rank trains for itself: the DDP wrapper is never called, so no gradients are shared",
        where=[
            *[Spot(at, "the model that is wrapped is called here, past the wrapper") for at in called[:1]],
            *[Spot(at, "wrapped here") for at in wrapped[:1]],
        ],
        evidence=[
            f"gradients and weights of ranks {one.number} and {other.number} differ in {len(apart)} windows, since window {apart[0]:,}",
            "a DistributedDataParallel was made, and no forward with gradients went through it",
        ],
        statement="the forward goes to the inner model (`.module`), where nothing synchronises",
        advice=["Call the wrapper: put what is computed into `forward`, and call `model(…)`, not `model.module.something(…)`."],
        step=apart[ENOUGH - 1],
    )


def _outside_the_wrapper(ranks: list[Rank]) -> Verdict:
    """Part of the model is wrapped in DDP, and another part drifts apart beside it. One that never was equal may be a rank's own share of a
    large layer; then the program gathers something in each step itself."""
    if len(ranks) < 2 or any(not rank.chart.ddp for rank in ranks):
        return None
    verdicts = (_outside_of_it(ranks[0], ranks[1], optimizer) for optimizer in reversed(ranks[0].chart.optimizers))
    return next((verdict for verdict in verdicts if verdict is not None), None)


def _outside_of_it(one: Rank, other: Rank, optimizer: str) -> Verdict:
    """Of what one optimizer trains."""
    windows = [
        window for window in sorted(set(one.chart.looks) & set(other.chart.looks))
        if any(key[0] == optimizer for key in one.chart.looks[window])
    ]  # fmt: skip
    wrapped = {number for fact in one.chart.ddp for number in fact["params"]}
    if len(windows) < ENOUGH or not wrapped:
        return None

    gathers = 4 * max(rank.collectives for rank in (one, other)) > one.chart.windows

    def equal(window: int, key: tuple[str, int], what: int, error: float) -> bool:
        return close(one.chart.looks[window][key][what], other.chart.looks[window][key][what], error)

    held = [key for key in one.chart.looks[windows[0]] if key[0] == optimizer]
    keys = [key for key in held if all(key in rank.chart.looks[window] for rank in (one, other) for window in windows)]
    shared = [key for key in keys if key[1] in wrapped and all(equal(window, key, 0, SAME_GRADIENT) for window in windows)]
    drifting = [
        key for key in keys
        if key[1] not in wrapped and (equal(windows[0], key, 1, OTHER_WEIGHT) or not gathers)
        and sum(not equal(window, key, 0, OTHER_WEIGHT) for window in windows) > len(windows) / 2
        and not equal(windows[-1], key, 1, OTHER_WEIGHT)
    ]  # fmt: skip
    if not shared or not drifting or any(not equal(windows[-1], key, 1, SAME_GRADIENT) for key in shared):
        return None
    numbers = {key[1] for key in drifting}
    holders = [model for model in one.chart.models.values() if numbers & set(model.parameters)]
    model = next((model for model in holders if model.kind != "DistributedDataParallel"), holders[0] if holders else None)
    made = [parameter.made_at for number in numbers if (parameter := one.chart.parameters.get(number)) and parameter.made_at]
    called = [at for (_, grad, _), at in model.places.items() if grad and at] if model is not None else []
    first, last = (tuple(rank.chart.looks[window][drifting[0]][1] for rank in (one, other)) for window in (windows[0], windows[-1]))
    named = [_name(one, key) for key in drifting]
    return Seen(
        title=f"{len(drifting)} parameters are trained outside of DDP: their gradients are not shared, and the ranks drift apart",
        where=[
            *[Spot(at, "trained here, outside of the wrapper") for at in called[:1]],
            *[Spot(at, "made here") for at in made[:1]],
            *[Spot(at, "wrapped here, without them") for fact in one.chart.ddp if (at := place(fact["at"]))][:1],
        ],
        evidence=[
            f"outside: {', '.join(named[:4])}{f' and {len(named) - 4} more' if len(named) > 4 else ''}",
            f"norm of {named[0]} on ranks {one.number} and {other.number}: {number(first[0])} and {number(first[1])} in window {windows[0]:,}, "
            f"{number(last[0])} and {number(last[1])} in window {windows[-1]:,}",
            f"the {len(shared)} parameters inside of the wrapper have the same gradients on both",
        ],
        severity="warning",
        statement="what is not part of the wrapped model gets no gradients from the other ranks",
        advice=["Wrap one module that holds everything that is trained, or wrap this part as well."],
        step=windows[ENOUGH - 1],
    )


def _calls_wrapper(rank: Rank) -> bool:
    return any(model.kind == "DistributedDataParallel" and any(grad for _, grad, _ in model.calls) for model in rank.chart.models.values())


def _both_differ(one: Rank, other: Rank, window: int) -> bool:
    """Whether most gradients and most weights differ between two ranks."""
    mine, theirs = one.chart.looks[window], other.chart.looks[window]
    keys = [key for key in mine if key in theirs and mine[key][0] > 0]
    differ = [key for key in keys if not close(mine[key][0], theirs[key][0], OTHER_WEIGHT) and not close(mine[key][1], theirs[key][1], OTHER_WEIGHT)]
    return len(differ) > len(keys) / 2


def _differing(one: Rank, other: Rank) -> dict[int, list[tuple[str, int]]]:
    """Windows in which both ranks looked, and the parameters with the same gradient and another weight."""
    found: dict[int, list[tuple[str, int]]] = {}
    for window in sorted(set(one.chart.looks) & set(other.chart.looks)):
        mine, theirs = one.chart.looks[window], other.chart.looks[window]
        if mine == theirs:
            continue
        keys = [
            key for key in mine
            if key in theirs and mine[key][0] > 0 and close(mine[key][0], theirs[key][0], SAME_GRADIENT)
            and not close(mine[key][1], theirs[key][1], OTHER_WEIGHT)
        ]  # fmt: skip
        if keys:
            found[window] = keys
    return found


def _name(rank: Rank, key: tuple[str, int]) -> str:
    known = rank.chart.parameters.get(key[1])
    return known.name if known is not None else f"{key[0]}:{key[1]}"


def _suspects(one: Rank, other: Rank) -> list[tuple[Place, str]]:
    """Lines that load weights on one rank only; seeds that differ; else the line that makes the optimizer."""
    loads = [{(at.file, at.line): at for fact in rank.chart.weights_loaded if (at := place(fact["at"]))} for rank in (one, other)]
    alone = [at for key, at in {**loads[0], **loads[1]}.items() if (key in loads[0]) != (key in loads[1])]
    if alone:
        return [(at, "loads weights, on one rank only") for at in alone[:2]]
    seeds = [
        {(at.file, at.line): (fact["value"], at) for fact in rank.chart.seeds if (at := place(fact["at"]))}
        for rank in (one, other)
    ]
    unequal = [seeds[0][key][1] for key in seeds[0] if key in seeds[1] and seeds[0][key][0] != seeds[1][key][0]]
    if unequal:
        return [(at, "seeds each rank differently before the model is made") for at in unequal[:1]]
    made = [optimizer.at for optimizer in one.chart.optimizers.values() if optimizer.at]
    return [(at, "these weights are not equal on all ranks") for at in made[:1]]
