"""The samples of a batch are taken for the steps of one sequence.

What it detects
    An attention or recurrent module with `batch_first=False`, which takes the first axis of its input for the steps, is given tensors whose
    first axis are the samples: as many as the loader puts into a batch, or as there are predictions, while the second axis is something else.
Why it matters
    Samples attend to each other and not to their own steps: what a sample says depends on its neighbours in the batch, and its own order is
    never seen. Nothing is raised, because the shapes fit.
How it is confirmed
    By the shapes, in each deep window. A trial runs these modules with `batch_first=True` (knob `batch-first`): the loss falls further.
How to cure it
    `batch_first=True` where the module is made, or `x.transpose(0, 1)` before and after it.
When it is wrong
    Attention from sample to sample may be meant (over the rows of a table); such models give it a batch of one, and then nothing is said.
    Where batch and steps are equally many, nothing is said either.
"""

from typing import Any

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule

LOOKS = 3


@cause_rule(
    "stall/batch-taken-for-steps", settled_by=("batch-first",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/inputs-and-targets-misaligned", "stall/input-ignored"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    looks = [fact.get("steps_first") or [] for fact in chart.deep if fact.get("calls")]
    if not looks or not looks[-1]:
        return None
    samples, why = _samples(chart)
    paths = {row[0] for rows in looks for row in rows}
    wrong = sorted(path for path in paths if all(_samples_come_first(row[2], samples) for rows in looks for row in rows if row[0] == path))
    if not wrong:
        return None
    if len(looks) < LOOKS:
        return Missing("three deep windows")
    row = next(row for rows in reversed(looks) for row in rows if row[0] in wrong)
    _, kind, shape, at = row
    named = ", ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else "")
    return Seen(
        title=f"{kind} takes the {shape[0]} samples of a batch for the steps of a sequence",
        where=[Spot(found, f"given ({', '.join(map(str, shape))}): the first axis are the samples") if (found := place(at)) else None],
        evidence=[
            f"{named}: batch_first is False, so the first axis counts as steps, in all of {len(looks)} looks",
            f"{shape[0]} is the number of {why}; the steps are axis 1",
        ],
        severity="warning",
        step=LOOKS,
        statement="batch_first=True is missing",
        advice=["Give the module batch_first=True, or hand it x.transpose(0, 1)."],
        certain=False,
    )


def _samples(chart: ProcessChart) -> tuple[set[int], str]:
    """How many samples a batch has: what the loaders say that the model is trained from, else what is predicted in one go."""
    trained_from = {loader for model in chart.models.values() for (_, grad, loader) in model.calls if grad and loader is not None}
    sizes = {chart.loaders[name].about.get("batch_size") for name in trained_from if name in chart.loaders}
    if sizes and all(isinstance(size, int) and size > 1 for size in sizes):
        return {size for size in sizes if isinstance(size, int)}, "samples that the loader puts into a batch"
    calls = chart.main_loss_call()
    shapes: list[Any] = [] if calls is None else [sample.get("input_shape") for sample in calls.samples]
    single = [shape[0] for shape in shapes if shape and len(shape) <= 2 and shape[0] > 1]
    return (set(single), "predictions") if len(single) == len(shapes) else (set(), "")


def _samples_come_first(shape: list[int], samples: set[int]) -> bool:
    return len(shape) == 3 and shape[0] in samples and shape[1] not in samples and shape[1] > 1
