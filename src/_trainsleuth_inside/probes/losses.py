"""Records what reaches the loss functions: shapes, labels, how sure and how different the predictions are.

Numbers are taken in sampled windows only. The wrappers step aside while something is compiled, and they carry the globals
and the source of the function they stand for, so that `torch.jit.script` compiles the original.
"""

from __future__ import annotations

import inspect
import sys
import time
import types
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.loss_numbers import best_guess, class_numbers, ctc_numbers, value_numbers
from _trainsleuth_inside.movement import read_all
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.tokens import begins_later, shares_ahead
from _trainsleuth_inside.watch import Watch

VIEWS = ("View", "UnsafeView", "ReshapeAlias")
SAME_ORDER = (*VIEWS, "Clone", "LogSoftmax", "ToCopy")
Measure = Callable[[Any, Dict[str, Any]], Tuple[Dict[str, Any], Dict[str, Any]]]
FUNCTIONS: Dict[str, Measure] = {
    "cross_entropy": class_numbers,
    "nll_loss": class_numbers,
    "binary_cross_entropy": value_numbers,
    "binary_cross_entropy_with_logits": value_numbers,
    "mse_loss": value_numbers,
    "l1_loss": value_numbers,
    "smooth_l1_loss": value_numbers,
    "huber_loss": value_numbers,
    "kl_div": value_numbers,
    "ctc_loss": ctc_numbers,
}
MOST_COMPUTED_AGAIN = 1 << 22  # numbers at a loss of 16 bit that is computed again in 32 bit
MOST_RANGES = 8  # of targets, that are noted of one place beyond those that are looked at closely
VALIDATION_BATCHES, FIRST_VALIDATIONS = 4, 16
SETTINGS = ("reduction", "label_smoothing", "ignore_index", "blank", "zero_infinity")


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    functional = torch.nn.functional
    grad_enabled = torch.is_grad_enabled
    looked_at: Dict[Tuple[str, int], int] = {}
    without_grad: Set[Any] = set()
    validations: Dict[Any, List[int]] = {}
    targets_at: Dict[Tuple[str, Optional[places.Place]], List[List[float]]] = {}

    @probe.guard
    def called(name: str, args: Any, kwargs: Any, result: Any) -> None:
        if not grad_enabled():
            note_without_grad(name, args, kwargs, result)
            return
        if not watch.sampling or not isinstance(result, torch.Tensor) or watch.late.busy():
            return
        began = time.perf_counter()
        watch.replay.record_loss(originals[name], args, kwargs)
        frame = sys._getframe(3)
        at = places.of_frame(frame)
        key = (name, hash(at))
        with watch.plainly():
            if looked_at.get(key) != watch.moment():
                looked_at[key] = watch.moment()
                measure(name, at, args, kwargs, result)
            else:
                look_at_targets(name, at, args, kwargs)
        watch.loss_cost += time.perf_counter() - began

    def look_at_targets(name: str, at: Optional[places.Place], args: Any, kwargs: Any) -> None:
        """Of further calls at a place in the same window only which targets they get: a GAN's real and fake ones may meet on one line."""
        target = args[1] if len(args) > 1 else kwargs.get("target")
        known = targets_at.setdefault((name, at), [])
        if len(known) < MOST_RANGES and isinstance(target, torch.Tensor) and readable(target) and target.numel() and not target.is_complex():
            with torch.no_grad():
                ends = torch.stack([target.min(), target.max()]).detach()

            def arrived(values: List[Any]) -> None:
                if values[0] not in known and len(known) < MOST_RANGES:
                    known.append(values[0])
                    watch.facts.write("loss_targets", fn=name, at=at, least=values[0][0], most=values[0][1])

            read_all(watch, [ends], arrived)

    def note_without_grad(name: str, args: Any, kwargs: Any, result: Any) -> None:
        if watch.running is not None:  # the loss is computed inside the model's own forward
            record = watch.models.get(id(watch.running))
            setting = (watch.running.training, watch.running_with_grad, watch.current_loader)
        elif watch.last_call is not None:
            record, setting = watch.last_call
        else:
            return
        if record is None or setting[1]:  # only the loss is without gradients: a number for the log, made from a training step's output
            return
        began, at = time.perf_counter(), places.of_frame(sys._getframe(4))
        key = (name, record.name, setting)
        if key not in without_grad:
            without_grad.add(key)
            watch.facts.write(
                "loss_without_grad", fn=name, model=record.name, training=setting[0], loader=setting[2], at=at, windows=watch.windows,
            )  # fmt: skip
        if isinstance(result, torch.Tensor) and not watch.late.busy() and is_chosen(validations.setdefault((name, hash(at)), [0, 0, 0])):
            with watch.plainly():
                measure(name, at, args, kwargs, result, "held_out")
        watch.loss_cost += time.perf_counter() - began

    def is_chosen(known: List[int]) -> bool:
        """The first batches of a validation, and of many validations ever fewer: `known` is its window, how many there were, and the batches."""
        moment = watch.moment()
        known[:] = [moment, known[1], known[2] + 1] if known[0] == moment else [moment, known[1] + 1, 1]
        return known[2] <= VALIDATION_BATCHES and (known[1] <= FIRST_VALIDATIONS or known[1] & (known[1] - 1) == 0)

    def measure(name: str, at: Optional[places.Place], args: Any, kwargs: Any, result: Any, kind: str = "loss_call") -> None:
        bound = signatures[name].bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        inputs: Any = given.get("input", given.get("log_probs"))
        if not (readable(inputs) and readable(result)):
            return
        with torch.no_grad():
            about, numbers = FUNCTIONS[name](torch, given)
            tokens = watch.deep_window.tokens() if about.get("target_kind") == "index" and watch.deep_window is not None else []
            if tokens and not begins_later(inputs, tokens):
                numbers.update(shares_ahead(torch, given["target"].detach(), tokens, given.get("ignore_index", -100)))
            given_too = watch.deep_window.was_given(given["target"]) if watch.deep_window is not None and "target" in given else None
            if given_too is not None:
                numbers["target_is_input"] = given_too
            guess = best_guess(torch, name, given)
            if guess is not None:
                numbers["guess"] = originals[name](guess, given["target"].to(guess.dtype), reduction="mean")
            if result.dtype in (torch.float16, torch.bfloat16) and inputs.numel() <= MOST_COMPUTED_AGAIN:
                numbers["in_full"] = in_full(name, given, inputs.device.type)
        numbers["value"] = result.detach().reshape(()) if result.numel() == 1 else result.detach().float().mean()
        names = list(numbers)
        window = watch.windows + 1
        fact = {
            "fn": name, "at": at, "window": window, "autocast": _autocast(torch, inputs),
            "dtype": str(inputs.dtype).replace("torch.", ""), "result_dtype": str(result.dtype).replace("torch.", ""),
            "settings": {key: given[key] for key in SETTINGS if key in given},
            "weighted": given.get("weight") is not None, "made_by": _made_by(inputs), "swapped": _swapped(inputs),
            "model": watch.last_call[0].name if watch.last_call else None, **about,
        }  # fmt: skip

        def arrived(values: List[Any]) -> None:
            found = dict(zip(names, values))
            watch.facts.write(kind, **fact, histogram=found.pop("histogram", []), numbers=found)

        read_all(watch, [numbers[key] for key in names], arrived)

    def in_full(name: str, given: Dict[str, Any], device: str) -> Any:
        """What the same loss of the same values is in 32 bit."""
        wider = {key: value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
                 for key, value in given.items()}  # fmt: skip
        with torch.autocast(device, enabled=False):
            return originals[name](**wider).float().mean()

    signatures = {}
    originals = {}
    for name in FUNCTIONS:
        original = getattr(functional, name, None)
        if original is not None:
            originals[name] = original
            signatures[name] = inspect.signature(original)
            setattr(functional, name, _standing_for(original, name, watch, called))
            watch.stands_at_rest(functional, name, original)


def _standing_for(original: Any, name: str, watch: Watch, called: Any) -> Any:
    aside, functional = watch.aside, watch.torch.nn.functional

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if aside():
            return original(*args, **kwargs)
        result = original(*args, **kwargs)
        called(name, args, kwargs, result)
        return result

    standing = types.FunctionType(wrapper.__code__, functional.__dict__, name, None, wrapper.__closure__)
    return stands_for(original)(standing)


def _made_by(tensor: Any) -> List[str]:
    """The operations that made a tensor, last first, as far as they follow one line."""
    names: List[str] = []
    node = tensor.grad_fn
    while node is not None and len(names) < 6:
        names.append(node.name().split("::")[-1])
        following = [branch for branch, _ in node.next_functions if branch is not None]
        node = following[0] if len(following) == 1 else None
    return names


def _swapped(tensor: Any) -> Optional[List[List[int]]]:
    """The shapes before and after, where a tensor was only viewed anew and has its axes in another order: no number was moved for that."""
    after = [int(size) for size in tensor.shape]
    node = tensor.grad_fn
    while node is not None and (name := node.name().split("::")[-1].partition("Backward")[0]) in SAME_ORDER:
        before = [int(size) for size in node._saved_self_sym_sizes] if name in VIEWS else []
        if len(before) > 2 and before != after and sorted(before) == sorted(after):
            return [before, after]
        node = node.next_functions[0][0]
    return None


def _autocast(torch: Any, tensor: Any) -> Optional[str]:
    kind = tensor.device.type
    if not torch.is_autocast_enabled(kind):
        return None
    return str(torch.get_autocast_dtype(kind)).replace("torch.", "")
