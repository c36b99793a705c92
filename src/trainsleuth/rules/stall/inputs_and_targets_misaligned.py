"""The targets do not belong to the inputs.

What it detects
    In a language model: the targets are the tokens of its own input, two ahead of their place (shifted twice); as a note, one behind it
    (shifted the wrong way) or at the same place. Where predictions for each step or pixel meet their targets: a `view` that gives the axes another
    order and moves no number (`logits.view(batch, classes, steps)`). Anywhere: the loss stands still at the level of guessing for at least 150 steps;
    every parameter is held, gets a gradient and moves; the predictions differ between samples; the labels vary. What is left: the
    targets do not belong to the inputs. As a note: the training loss has fallen far below that level, and what was validated never was
    better than guessing, from the first validation to the last: pairs that do not belong together can only be learnt by heart.
Why it matters
    A permutation applied to inputs and not to targets, or a batch that is off by one, looks like a hard problem. A model that is taught
    to skip a token, or to repeat one, has a loss that falls and generates nonsense.
How it is confirmed
    The distance between tokens and targets is counted in every deep window; the trial `next-token` shows what it costs. Of a loss that
    stands still, watching cannot tell. A trial with the guilty lines rewritten can, where they are known; else two together: a fixed
    batch that is learnt by heart (`overfit-one-batch`) shows that model, loss and optimizer work, and each sample with the input of
    another one (`inputs-turned-round`) that the pairs tell nothing, if the loss ends no higher.
How to cure it
    `transpose` or `permute` changes the order of axes, `view` and `reshape` never do. Follow one sample by hand from the file to the
    loss; shuffle pairs, never sides. Models of Hugging Face shift the labels themselves: give them `labels=input_ids`.
When it is wrong
    Problems that are really as hard as that, learning rates that are far too small or too large, long plateaus; data that are too few to
    learn anything general from, or labels that are random on purpose. It is a suspicion.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import LossCalls
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import Standing, chance_of, standing
from trainsleuth.rules.wording import number

MANY = 150
NEARLY_ALL, HARDLY = 0.98, 0.9
WAY_TO_GO = 0.1  # of its own size that the parameter which moves most could have moved by now
VALIDATIONS, BY_HEART = 4, 0.6  # how many at least; the share of the chance level that the training loss must have come below
DISTANCES = {-1: "one token behind", 0: "at the same place", 1: "one token ahead", 2: "two tokens ahead"}


@cause_rule(
    "stall/inputs-and-targets-misaligned", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("next-token", "overfit-one-batch"),
    structural=False, last_resort=True,
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    torn = _shifted(chart) or _scrambled(chart)
    if torn is not None:
        return torn
    now = standing(chart)
    if isinstance(now, str):
        return Missing(now)
    if not now.stuck:
        return _by_heart(chart, now)
    if now.curve.count < MANY:
        return Missing(f"{MANY} values of a loss that stands still (there are {now.curve.count})")
    if any(now.calls.numbers("target_is_input")):
        return None  # an autoencoder's targets cannot be those of other inputs
    entropies = now.calls.numbers("entropy")
    if now.classes and entropies and min(entropies[-3:]) > 0.9995 * math.log(now.classes):
        return None  # the predictions say nothing at all: that is another sickness
    called = chart.called_parameters() or list(chart.parameters.values())  # without modules: what an optimizer holds
    held = [p for p in called if p.owners and p.trainable and p.looks >= 3]
    if not held or any(not p.with_gradient or not p.moved for p in held):
        return None
    ratios = [p.update / p.weight for p in held if p.update and p.weight]
    if not ratios or max(ratios) * chart.windows < WAY_TO_GO:
        return Missing("updates that could lead anywhere: the weights have hardly moved in all these steps")
    loaders = [loader.at for loader in chart.loaders.values() if loader.at]
    return Seen(
        title="nothing is learnt but the frequencies of the targets: do they belong to these inputs?",
        where=[
            Spot(now.calls.at, "inputs and targets meet here") if now.calls.at else None,
            *[Spot(at, "the data come from here") for at in loaders[:1]],
        ],
        evidence=[
            f"loss {number(now.level)} after {now.curve.count:,} steps; guessing from the frequencies gives {number(now.chance)}",
            f"all {len(held)} parameters get gradients and move (by up to {number(max(ratios))} of their size in a step)",
            "predictions differ between samples, targets vary: no mechanical fault was found",
        ],
        severity="warning",
        step=now.curve.count,
        statement="targets may be paired with the wrong inputs",
        advice=["Follow one sample from file to loss; what sorts or shuffles (a collate function too) must do it to inputs and targets alike."],
        certain=False,
    )


def _by_heart(chart: ProcessChart, now: Standing) -> Seen | None:
    """What is trained falls far below chance, what is validated never does."""
    calls = next((calls for (name, _), calls in chart.held_out.items() if name == now.calls.function), None)
    if calls is None or now.level > BY_HEART * now.chance or calls.last["settings"] != now.calls.last["settings"]:
        return None
    guessing, means = chance_of(calls), _by_validation(calls)
    if guessing is None or len(means) < VALIDATIONS or min(means.values()) < NEARLY_ALL * guessing[0]:
        return None
    return Seen(
        title="what is trained is learnt by heart, what is validated is guessed: do the targets belong to these inputs?",
        where=[
            Spot(now.calls.at, "inputs and targets of the training meet here") if now.calls.at else None,
            Spot(calls.at, "those of the validation here") if calls.at else None,
            *[Spot(loader.at, "the data come from here") for loader in list(chart.loaders.values())[:1] if loader.at],
        ],
        evidence=[
            f"training loss {number(now.curve.first)} → {number(now.level)}; guessing from the frequencies gives {number(now.chance)}",
            f"{len(means)} validations: loss between {number(min(means.values()))} and {number(max(means.values()))}, "
            f"none better than guessing ({number(guessing[0])})",
        ],
        severity="note",
        step=max(means),
        statement="targets may be paired with the wrong inputs, in the training or in the validation data",
        advice=["Follow one sample of each set from file to loss. If the pairs are right, the data are too few to learn anything general from."],
        certain=False,
        settle="no trial can pair the data anew: look at them",
    )


def _by_validation(calls: LossCalls) -> dict[int, float]:
    """The mean loss of the batches that were looked at, by the window before which they came."""
    values: dict[int, list[float]] = {}
    for sample in calls.samples:
        values.setdefault(sample["window"], []).append(sample["numbers"]["value"])
    return {window: sum(found) / len(found) for window, found in values.items()}


def _scrambled(chart: ProcessChart) -> Seen | None:
    """A view that swaps axes: the scores of one step are spread over others."""
    for calls in chart.loss_calls.values():
        looks = [swapped for sample in calls.samples if (swapped := sample.get("swapped"))]
        if len(looks) < 3 or len(looks) < len(calls.samples):
            continue
        before, after = looks[-1]
        order = ", ".join(str(before.index(size)) for size in after)
        return Seen(
            title=f"predictions are scrambled: a view of shape {tuple(before)} as {tuple(after)} moves no number",
            where=[Spot(calls.at, f"meets its targets here; `permute({order})` would move them") if calls.at else None],
            look_for="view",
            evidence=[
                f"in {len(looks)} of {len(looks)} looks the same axes in another order, by `view` or `reshape` alone",
                "each prediction is put together from scores of different places",
            ],
            severity="critical",
            step=3,
            statement="view and reshape keep the order of the numbers; only transpose or permute exchanges axes",
            advice=[f"Use `permute({order})` (or transpose) in place of view or reshape."],
        )
    return None


def _shifted(chart: ProcessChart) -> Seen | None:
    """Targets that are the model's own tokens, and not the next ones; a run that compares with the next ones too has several heads."""
    places = []
    for calls in chart.loss_calls.values():
        shares = {ahead: calls.numbers(f"ahead {ahead}") for ahead in DISTANCES}
        looks = min(map(len, shares.values()))
        if looks and max(max(values) for ahead, values in shares.items() if ahead == 1) >= HARDLY:
            return None
        found = [ahead for ahead, values in shares.items() if looks >= 2 and min(values) >= NEARLY_ALL]
        if len(found) == 1:
            places.append((calls, found[0], looks))
    if not places:
        return None
    calls, ahead, looks = places[0]
    right_for_some = ahead != 2  # an autoencoder repeats its input, an exercise for memory the token before
    loaders = [loader.at for loader in chart.loaders.values() if loader.at]
    why = {
        2: "the labels are shifted twice: once by the program, once more where the loss is computed (models of Hugging Face shift them themselves)",
        -1: "inputs and targets are shifted against each other the wrong way round, unless the model is to repeat what it has just seen",
        0: "the targets are the inputs themselves: right for an autoencoder; a language model has then nothing to predict",
    }[ahead]
    return Seen(
        title=f"each target is the input's own token {DISTANCES[ahead]}, not the next one",
        where=[
            Spot(calls.at, "inputs and targets meet here") if calls.at else None,
            *[Spot(at, "the data come from here") for at in loaders[:1]],
        ],
        evidence=[
            f"in {looks} steps that were looked at, at least {min(calls.numbers(f'ahead {ahead}')):.0%} of the targets are the token "
            f"{DISTANCES[ahead]}, at most {max(calls.numbers('ahead 1')):.0%} the next one"
        ],
        severity="note" if right_for_some else "warning",
        step=[sample["window"] for sample in calls.samples if "ahead 1" in sample["numbers"]][1],
        statement=why,
        advice=["Give targets that are one token ahead of the inputs, or `labels=input_ids` to a model that shifts them itself."],
        certain=False,
    )
