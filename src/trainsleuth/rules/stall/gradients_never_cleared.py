"""Each step uses the gradients of all steps before it.

What it detects
    In three windows in a row the gradient of the last step was still there, unchanged, when the next backward began, and the next
    step used both. Also without any optimizer: the program changes its tensors itself, and their gradients are still those of the
    backward before when the next one begins.
Why it matters
    The step grows with the length of the run and points to the past: the loss oscillates or diverges.
How it is confirmed
    By the gradient itself: the same tensor, not zero, at the start of the window.
How to cure it
    Call `optimizer.zero_grad()` once per step.
When it is wrong
    Gradients that someone else clears (the model's `zero_grad`, a loop over parameters, the trainer) are clear: no matter who did it.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Optimizer
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count, names


@cause_rule(
    "stall/gradients-never-cleared", settled_by=("clear-every-step",),
    explains=("stall/flat-loss", "stall/uniform-predictions", "nan/loss-not-finite"),
    masks=("stall/inputs-and-targets-misaligned", "stall/dead-units", "stall/input-ignored", "data/not-normalised", "nan/diverged"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for optimizer in chart.optimizers.values():
        if optimizer.windows < 4 or optimizer.stale < 3 or optimizer.stale < 0.9 * (optimizer.watched - optimizer.skipped - 1):
            continue
        main = chart.main_loss()
        return Seen(
            title="gradients are never cleared: each step adds to all the steps before",
            look_for="bare-clear",
            where=[
                Spot(optimizer.step_at, "uses this window's gradient and every earlier one") if optimizer.step_at else None,
                Spot(main[0], "adds to what is already there") if main else None,
            ],
            evidence=[
                f"in {optimizer.stale:,} of {optimizer.watched:,} windows looked at the last step's gradient was still there"
            ],
            step=4,
            statement="nothing clears the gradients between two steps",
            advice=["Call `optimizer.zero_grad()` once per step, after the step or before the first backward of a window."],
        )
    return _by_hand(chart) or next((seen for optimizer in chart.optimizers.values() if (seen := _in_part(chart, optimizer))), None)


def _in_part(chart: ProcessChart, optimizer: Optimizer) -> Seen | None:
    """What clears the gradients does not reach all that the optimizer steps."""
    looks = optimizer.left_looks
    parameters = [parameter for number in optimizer.parameters if (parameter := chart.parameters.get(number)) and parameter.with_gradient >= 3]
    left = [parameter for parameter in parameters if parameter.left >= max(3, 0.9 * looks)]
    cleared = [parameter for parameter in parameters if not parameter.left]
    if not left or not cleared or looks < 3:
        return None
    main = chart.main_loss()
    return Seen(
        title=f"the gradients of {count(left, 'parameter')} are never cleared: each step adds to all the steps before",
        look_for="bare-clear",
        where=[
            Spot(optimizer.step_at, "uses this window's gradient and every earlier one") if optimizer.step_at else None,
            Spot(optimizer.cleared_at, "clears only the others") if optimizer.cleared_at else None,
            Spot(optimizer.at, "holds both") if optimizer.at else None,
            Spot(main[0], "adds to what is already there") if main else None,
        ],
        evidence=[
            f"{names(left)}: in {left[0].left} of {looks} windows looked at the last step's gradient was still there",
            f"{names(cleared)}: clear in all of them",
        ],
        step=4,
        statement="what clears the gradients between two steps does not reach these parameters",
        advice=["Call `zero_grad()` of the optimizer, which knows all that it steps, not of a model that contains only a part."],
    )


def _by_hand(chart: ProcessChart) -> Seen | None:
    """A program with an update rule of its own."""
    looks = [fact for fact in chart.by_hand if fact["changed"]]
    main = chart.main_loss()
    if chart.optimizers or main is None or len(looks) < 3 or any(fact["stale"] < fact["changed"] for fact in looks):
        return None
    return Seen(
        title="gradients are never cleared: each step adds to all the steps before",
        look_for="bare-clear",
        where=[Spot(main[0], "adds to what is already there")],
        evidence=[
            f"there is no optimizer; the program changes {looks[-1]['changed']} tensors itself",
            f"in {len(looks)} of {len(looks)} looks all of them still had the gradient of the backward before when the next one began",
        ],
        step=4,
        statement="nothing clears the gradients between two steps",
        advice=["Set `p.grad = None` for each of these tensors after it was changed, or call `p.grad.zero_()`."],
    )
