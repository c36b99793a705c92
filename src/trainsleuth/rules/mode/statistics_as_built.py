"""A copy of the model is validated with BatchNorm statistics that nothing ever changed.

What it detects
    A model that no optimizer holds (an average of the weights, a teacher) is called in eval mode without gradients, after training has begun. Its
    BatchNorm layers still have the mean 0 and variance 1 that they were built with, while a model of the same shape learns its own in training.
Why it matters
    Its weights are those of the trained model, and they are given numbers on another scale than they were trained with. What validation says
    then has nothing to do with how good the model is. The usual cause: the average is made of `parameters()`, and statistics are buffers.
How it is confirmed
    By the numbers of the layers. A trial in which the buffers are copied as well gets other scores, and a repeated run the same.
How to cure it
    Copy the buffers as well: `for own, other in zip(average.buffers(), model.buffers()): own.copy_(other)`, or average the `state_dict()`.
When it is wrong
    A random network that is only used for its features is no copy of what is trained: its weights are others in number or shape.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Model
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count

ENOUGH = 20  # windows, before a copy can be told from the start


@cause_rule("mode/statistics-as-built", masks=("stall/metric-does-not-follow-loss", "validation/overfitting"))
def rule(chart: ProcessChart) -> Verdict:
    for model in chart.models.values():
        paths = chart.norms_as_built.get(model.id)
        if not paths or chart.norms_looked_at[model.id] < ENOUGH or _owned(chart, model):
            continue
        trained = next((other for other in chart.models.values() if _owned(chart, other) and _shapes(chart, other) == _shapes(chart, model)), None)
        key = next((key for key in model.calls if not key[0] and not key[1]), None)
        if trained is None or key is None or not any(training and grad for training, grad, _ in trained.calls):
            continue
        at, made = model.places.get(key), model.made.get("")
        return Seen(
            title=f"a copy of the model is validated whose {count(paths, 'BatchNorm layer')} never learnt any statistics",
            where=[
                Spot(at, "the copy is called here, in eval mode") if at else None,
                Spot(made, "made here") if made else None,
            ],
            evidence=[
                f"{', '.join(paths[:4])}: mean 0 and variance 1, as built, after {chart.norms_looked_at[model.id]:,} steps",
                f"a {trained.kind} with weights of the same shapes is trained, and learns its own statistics",
                "no optimizer holds the copy: it gets its weights by other means, and its buffers not at all",
            ],
            severity="warning",
            step=chart.norms_looked_at[model.id],
            statement="the copy gets the weights of the trained model, and not its buffers",
            advice=["Copy the buffers as well: for own, other in zip(average.buffers(), model.buffers()): own.copy_(other)."],
        )
    return None


def _owned(chart: ProcessChart, model: Model) -> bool:
    return any(known.owners for number in model.parameters if (known := chart.parameters.get(number)) is not None)


def _shapes(chart: ProcessChart, model: Model) -> list[tuple[int, ...]]:
    return [chart.parameters[number].shape for number in model.parameters if number in chart.parameters]
