"""Layers that behave differently in training run in eval mode while the model is trained.

What it detects
    The latest forwards that lead to a backward run with Dropout or BatchNorm layers in eval mode, and the parameters of that model
    are trained. Or norm layers of a model in train mode are in eval mode, trainable, with the statistics that they were built with.
Why it matters
    Dropout does nothing, and BatchNorm uses running statistics that are never updated: fresh ones (mean 0, variance 1) normalise
    nothing at all.
How it is confirmed
    A trial that puts the modules into train mode before each training forward (knob `train-mode`).
How to cure it
    Call `model.train()` at the start of each epoch, after validation.
When it is wrong
    Frozen BatchNorm that has learnt its statistics, in a model that is in train mode, is a known practice: silent. A model without such
    layers does not care: silent. A part that is looked at on its own in eval mode now and then, and trained within the whole: silent.
    Teachers, perceptual losses and attacks run in eval mode and are not what is trained.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Model, Parameter, place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import count

LATEST = 12


@cause_rule(
    "mode/eval-during-training", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("train-mode",),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for model in chart.models.values():
        fact = model.modes.get((False, True))
        if fact is None or not _is_trained(chart, model) or _rather_as_a_part(chart, model):
            continue
        in_eval, total = _latest(model)
        if total < 3 or in_eval < 0.9 * total:
            continue
        if chart.windows < 3:
            return Missing("three windows")
        affected = fact["in_eval"]
        norms = [path for path, kind, _ in affected if "Norm" in kind]
        others = [path for path, kind, _ in affected if "Norm" not in kind]
        if not affected or all(frozen for _, _, frozen in affected):
            continue
        what = " and ".join(
            text
            for text in (count(norms, "norm layer") if norms else "", count(others, "dropout layer") if others else "")
            if text
        )
        set_at = place(fact["set_at"])
        at = place(fact["at"])
        switched = any(training for training, _ in model.recent) or (True, True) in model.modes
        return Seen(
            title=f"the model is trained in eval mode: {what} do not do their work",
            where=[
                Spot(set_at, "puts it into eval mode, and nothing puts it back") if set_at else None,
                Spot(at, "trained here") if at else None,
            ],
            evidence=[
                f"in eval mode during the latest training forwards: {', '.join(path or model.kind for path, _, _ in affected[:4])}"
                + (f" and {fact['eval_count'] - 4} more" if fact["eval_count"] > 4 else ""),
                f"{in_eval:,} of the last {total:,} windows looked at were trained in eval mode"
                + ("; the first ones were in train mode" if switched else ", from the first one on"),
                *(["BatchNorm normalises with running statistics that are no longer updated"] if norms else []),
            ],
            severity="critical" if norms else "warning",
            step=max(3, int(fact["windows"])),
            statement="nothing calls train() before training goes on",
            advice=["Call `model.train()` at the start of each training epoch."],
        )
    return _in_part(chart)


def _in_part(chart: ProcessChart) -> Verdict:
    """The model is in train mode and norm layers in it are not. To keep statistics that were learnt is common; these were not."""
    for model in chart.models.values():
        fact = model.modes.get((True, True))
        if fact is None or not _is_trained(chart, model):
            continue
        as_built = chart.norms_as_built.get(model.id, [])
        learn = {p.names[model.id].rpartition(".")[0] for p in _held(chart, model) if p.owners and p.with_gradient and model.id in p.names}
        affected = [path for path, _, _ in fact["in_eval"] if path in as_built and path in learn]
        if not affected:
            continue
        if chart.windows < 3:
            return Missing("three windows")
        set_at, at = place(fact["set_at"]), place(fact["at"])
        now = standing(chart)
        return Seen(
            title=f"{count(affected, 'norm layer')} of the model are trained in eval mode, with statistics of no data",
            where=[
                Spot(set_at, "puts them into eval mode, and nothing puts them back") if set_at else None,
                Spot(at, "trained here") if at else None,
            ],
            evidence=[
                f"in eval mode while the rest of the model is in train mode: {', '.join(affected[:4])}"
                + (f" and {len(affected) - 4} more" if len(affected) > 4 else ""),
                "they normalise with mean 0 and variance 1, as they were built: no batch has ever changed that",
            ],
            severity="warning" if isinstance(now, str) or not now.stuck else "critical",
            step=max(3, int(fact["windows"])),
            statement="nothing calls train() on these layers before training begins",
            advice=["Call `.train()` on that part of the model, or take out the line that puts it into eval mode: no statistics were learnt."],
        )
    return None


def _rather_as_a_part(chart: ProcessChart, model: Model) -> bool:
    """Whether it is trained in train mode, as a part of another model, and only looked at now and then on its own."""
    own, alone = set(model.parameters), sum(windows for _, windows in model.recent)
    wholes = [other for other in chart.models.values() if other is not model and own <= set(other.parameters)]
    return any(sum(windows for training, windows in whole.recent if training) > alone for whole in wholes)


def _latest(model: Model) -> tuple[int, int]:
    """Of the latest windows that were looked at: how many were trained in eval mode, of how many."""
    in_eval = total = 0
    for training, windows in reversed(model.recent):
        total += windows
        in_eval += 0 if training else windows
        if total >= LATEST:
            break
    return in_eval, total


def _held(chart: ProcessChart, model: Model) -> list[Parameter]:
    return [chart.parameters[n] for n in model.parameters if n in chart.parameters]


def _is_trained(chart: ProcessChart, model: Model) -> bool:
    return any(p.owners and p.with_gradient for p in _held(chart, model))
