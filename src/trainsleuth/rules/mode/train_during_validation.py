"""The model is validated in train mode.

What it detects
    A model with Dropout or BatchNorm runs in train mode without gradients on the batches of another loader than the one it is
    trained from, or a loss is computed there without gradients. Or a copy of it that no optimizer holds (an average of the weights) does,
    and its BatchNorm layers learn from that. Or the model is in eval mode and BatchNorm layers in it are not.
Why it matters
    Dropout makes the result noisy and too low, and BatchNorm learns from the validation data: its running statistics leak.
How it is confirmed
    From the mode at the call.
How to cure it
    `model.eval()` before validation, `model.train()` after it.
When it is wrong
    Fakes for a discriminator, teachers and `update_bn` run in train mode without gradients on training batches, and no loss is
    computed there. MC dropout keeps the model in eval mode and only Dropout in train mode, or says `training=True`.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count, percent


@cause_rule("mode/train-during-validation", settled_by=("eval-mode",), masks=("stall/metric-does-not-follow-loss",))
def rule(chart: ProcessChart) -> Verdict:
    for model in chart.models.values():
        fact = model.modes.get((True, True)) or model.modes.get((True, False))
        if (
            fact is None
            or fact["train_count"] == 0
            or not any(p.owners for p in map(chart.parameters.get, model.parameters) if p)
        ):
            continue
        trained_from = {loader for (_, grad, loader) in model.calls if grad}
        elsewhere = {
            key: n for key, n in model.calls.items() if key[0] and not key[1] and key[2] is not None and key[2] not in trained_from and n >= 2
        }  # fmt: skip
        losses = [f for f in chart.losses_without_grad if f["model"] == model.id and f["training"] and f["windows"]]
        if not trained_from or (not elsewhere and not losses):
            continue
        in_eval = sum(n for (training, grad, _), n in model.calls.items() if not training and not grad)
        calls = sum(elsewhere.values())
        if in_eval > calls and not losses:
            continue
        at = next((model.places.get(key) for key in elsewhere), None) or (place(losses[0]["at"]) if losses else None)
        return Seen(
            title=f"the model is validated in train mode: {count(fact['train_count'], 'layer')} in train mode",
            where=[Spot(at, "runs in train mode, without gradients") if at else None],
            evidence=[
                *(
                    [f"{calls:,} forwards without gradients in train mode, on batches that it is not trained on"]
                    if elsewhere
                    else []
                ),
                *(["a loss is computed there without gradients"] if losses else []),
                f"{count(fact['train_count'], 'Dropout or norm layer')} in train mode",
            ],
            severity="warning",
            step=int(losses[0]["windows"]) if losses else None,
            statement="nothing calls eval() before validation",
            advice=["Call `model.eval()` before validation and `model.train()` after it."],
            look_for="bare-eval",
        )
    return _in_part(chart) or _by_function(chart) or _of_a_copy(chart)


def _in_part(chart: ProcessChart) -> Verdict:
    """The model is in eval mode and some of its BatchNorm layers are not: a `train()` of a part's own that forgets the mode it is given."""
    for model in chart.models.values():
        fact = model.modes.get((False, False))
        if fact is None or fact["eval_count"] > len(fact["in_eval"]) or not any(p.owners for p in map(chart.parameters.get, model.parameters) if p):
            continue
        asleep = {path for path, _, _ in fact["in_eval"]}
        awake = [path for path, kind in model.modules.items() if "BatchNorm" in kind and path not in asleep]
        trained_from = {loader for (_, grad, loader) in model.calls if grad}
        calls = sum(n for (training, grad, loader), n in model.calls.items() if not training and not grad and loader not in trained_from)
        if not awake or calls < 2 or not trained_from:
            continue
        key = next((key for key in model.calls if not key[0] and not key[1]), None)
        at = model.places.get(key) if key is not None else None
        made = next((at for path, at in sorted(model.made.items()) if path and any(each.startswith(f"{path}.") for each in awake)), None)
        return Seen(
            title=f"the model is validated in eval mode, but {count(awake, 'BatchNorm layer')} of it in train mode",
            where=[
                Spot(at, "validated here, with parts in train mode") if at else None,
                Spot(made, "made here; eval() does not reach all of it") if made else None,
            ],
            evidence=[
                f"in train mode while {model.kind} is in eval mode: {', '.join(awake[:4])}{f' and {len(awake) - 4} more' if len(awake) > 4 else ''}",
                f"{calls:,} forwards without gradients, on batches that it is not trained on; these layers learn from them",
            ],
            severity="warning",
            statement="a part of the model does not pass eval() on (a train() of its own that forgets its mode, or a call of train() on the part)",
            advice=["Let an own `train(self, mode=True)` call `super().train(mode)`, or drop it."],
        )
    return None


def _by_function(chart: ProcessChart) -> Verdict:
    """`F.dropout(x, p)` knows nothing of the mode of the model that calls it."""
    trained_from = {loader for model in chart.models.values() for (_, grad, loader) in model.calls if grad}
    facts = [fact for fact in chart.drops_in_eval if fact["loader"] is None or fact["loader"] not in trained_from]
    if not facts or not chart.backwards:
        return None
    lines = list(dict.fromkeys(at for fact in facts if (at := place(fact["at"]))))
    return Seen(
        title="dropout goes on in validation: functional.dropout is not told the mode",
        where=[Spot(at, "drops in eval mode, too: its `training` is True unless you say otherwise") for at in lines[:4]],
        evidence=[
            f"the model is in eval mode, and {percent(facts[0]['p'])} of these numbers are dropped all the same",
            f"{count(lines, 'line')} {'calls' if len(lines) == 1 else 'call'} functional.dropout without `training`",
        ],
        severity="warning",
        step=int(facts[0]["windows"]) or None,
        statement="functional.dropout is called without training=self.training",
        advice=["F.dropout(x, p, training=self.training), or an nn.Dropout module."],
    )


def _of_a_copy(chart: ProcessChart) -> Verdict:
    """A model that no optimizer holds (an average of the weights) is validated, and its BatchNorm layers learn from that."""
    trained_from = {loader for model in chart.models.values() for (_, grad, loader) in model.calls if grad}
    trained = [model for model in chart.models.values() if any(p.owners for p in map(chart.parameters.get, model.parameters) if p)]
    for model in chart.models.values():
        if model in trained or not model.parameters:
            continue
        fact = model.modes.get((True, False))
        losses = [f for f in chart.losses_without_grad if f["model"] == model.id and f["training"] and f["windows"]]
        elsewhere = {key: n for key, n in model.calls.items() if key[0] and not key[1] and key[2] is not None and key[2] not in trained_from}
        in_eval = sum(n for (training, grad, _), n in model.calls.items() if not training and not grad)
        norms = [path for path, kind in model.modules.items() if "BatchNorm" in kind]
        asleep = {path for path, _, _ in fact["in_eval"]} if fact is not None else set()
        norms = [path for path in norms if path not in asleep]
        alike = any(other.kind == model.kind and other.modules == model.modules for other in trained)
        if fact is None or not (losses or alike) or not trained_from or sum(elsewhere.values()) < 2 or in_eval or not norms:
            continue
        at = next((model.places.get(key) for key in elsewhere), None)
        made_at = model.made.get("")
        return Seen(
            title=f"a copy of the model is validated in train mode: {count(norms, 'BatchNorm layer')} learn from the validation data",
            where=[
                Spot(at, "runs in train mode, without gradients") if at else None,
                Spot(made_at, f"this {model.kind} was made here, and nothing calls eval() on it") if made_at else None,
            ],
            evidence=[
                f"{sum(elsewhere.values()):,} forwards of {model.kind} without gradients in train mode, on batches that nothing is trained on",
                f"{count(fact['train_count'], 'Dropout or norm layer')} in train mode",
                "no optimizer holds its weights, so it is no part of the training",
            ],
            severity="warning",
            step=int(losses[0]["windows"]) if losses else None,
            statement="eval() is called on another model than the one that is validated",
            advice=["Call `eval()` on the copy itself, once: it is never trained."],
        )
    return None
