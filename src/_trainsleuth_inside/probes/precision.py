"""Records what half precision does: gradients that vanish, that are clipped or stepped with while scaled, updates that are lost.

Everything here happens in windows that are looked at; while resting, torch's own functions stand where the clip functions are.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Callable, Dict, List, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.half_gradients import HalfGradients
from _trainsleuth_inside.movement import plain, read_all, sample
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch
from _trainsleuth_inside.windows import Backward, OptimizerRecord

LIMITS = {"clip_grad_norm_": "max_norm", "clip_grad_value_": "clip_value", "clip_grads_with_norm_": "max_norm"}
SECOND_MOMENTS = ("exp_avg_sq", "square_avg", "sum")
READY = 0  # the stage in which a scaler has not unscaled an optimizer's gradients
NEAR = 16  # nodes between the loss and the multiplication with the scale
MOST_PARAMETERS = 400


def install(watch: Watch, probe: Probe) -> None:
    watch.precision = Precision(watch, probe)
    utils = watch.torch.nn.utils
    for name in LIMITS:
        original = getattr(utils, name, None)  # the last one came with torch 2.6
        if original is None:
            continue
        ours = _clip_watched(watch, name, original)
        for owner in (utils, utils.clip_grad):
            if getattr(owner, name, None) is original:
                setattr(owner, name, ours)
                watch.stands_at_rest(owner, name, original)


def _clip_watched(watch: Watch, name: str, original: Any) -> Any:
    aside, precision = watch.aside, watch.precision

    @stands_for(original)
    def clip(*args: Any, **kwargs: Any) -> Any:
        if watch.resting or not watch.sampling or aside():
            return original(*args, **kwargs)
        versions = precision.before_clip()
        result = original(*args, **kwargs)
        precision.after_clip(name, args, kwargs, result, versions)
        return result

    return clip


class Precision:
    """What is known of the present window, as far as precision is concerned."""

    def __init__(self, watch: Watch, probe: Probe) -> None:
        self._watch = watch
        self._torch = watch.torch
        self._halves = (watch.torch.float16, watch.torch.bfloat16)
        self._gradients = HalfGradients(watch, probe)
        self._sizes: Dict[str, Any] = {}  # of a small gradient of each optimizer, right after backward
        self._firsts: Dict[int, Tuple[Any, Any]] = {}  # of each parameter of 16 bit, a sample at the first look
        self.graph_is_known: Callable[..., None] = probe.guard(self._gradients.begin)
        self.before_backward: Callable[..., None] = probe.guard(self._before_backward)
        self.after_backward: Callable[..., None] = probe.guard(self._after_backward)
        self.before_step: Callable[..., None] = probe.guard(self._before_step)
        self.after_look: Callable[..., None] = probe.guard(self._after_look)
        self.before_clip: Callable[..., Any] = probe.guard(self._before_clip)
        self.after_clip: Callable[..., None] = probe.guard(self._after_clip)

    # -- backward --------------------------------------------------------------------------------------------------

    def _before_backward(self) -> None:
        enabled, dtype_of = self._torch.is_autocast_enabled, self._torch.get_autocast_dtype
        self._gradients.autocast = next((dtype_of(kind) for kind in ("cuda", "cpu") if enabled(kind)), None)

    def _after_backward(self, backward: Backward, loss: Any) -> None:
        watch = self._watch
        scaler = self._scaler_of(loss)
        backward.scaler = None if scaler is None else weakref.ref(scaler)
        if self._gradients.autocast is not None:
            self._gradients.write_autocast(backward.at)
        self._gradients.end(backward.at, scaler is not None)
        original = watch.before_scaling(loss)
        if original is not None and original.dtype in self._halves:
            dtype = _short(original.dtype)
            watch.facts.once(("half loss", backward.at, dtype), "half_loss", at=backward.at, dtype=dtype)
        if scaler is not None and watch.sampling and not watch.late.busy():
            for record in watch.optimizers.values():
                if record.pending and record.pending[-1] is backward:
                    self._sizes[record.name] = _size(record.sample_gradient())

    def _scaler_of(self, loss: Any) -> Any:
        """The scaler that multiplied this loss, or one from which it was computed in a few operations."""
        if self._watch.scaled_by is None or loss is None:
            return None
        reference, number = self._watch.scaled_by
        queue = [loss.grad_fn]
        for node in queue:
            if node is not None and node._sequence_nr() == number:
                return reference()
            if node is not None and len(queue) < NEAR:
                queue.extend(following for following, _ in node.next_functions)
        return None

    def _still_scaled(self, record: OptimizerRecord) -> Any:
        """The scaler that has multiplied the gradients that this optimizer holds, and has not divided them again."""
        reference = record.pending[-1].scaler if record.pending else None
        scaler = reference() if reference is not None else None
        if scaler is None or scaler._scale is None:
            return None
        return None if has_unscaled(scaler, record.optimizer()) else scaler

    # -- clipping --------------------------------------------------------------------------------------------------

    def _before_clip(self) -> List[Tuple[OptimizerRecord, int]]:
        found = []
        for record in self._watch.optimizers.values():
            grad = record.sample_gradient()
            if grad is not None and self._still_scaled(record) is not None:
                found.append((record, grad._version))
        return found

    def _after_clip(self, name: str, args: Any, kwargs: Any, result: Any, versions: Any) -> None:
        watch = self._watch
        limit = args[1] if len(args) > 1 else kwargs.get(LIMITS[name])
        if not isinstance(limit, (int, float)) or watch.late.busy():
            return
        for record, version in versions or ():
            grad, scaler = record.sample_gradient(), self._still_scaled(record)
            if grad is None or grad._version == version or scaler is None:
                continue
            fact = {"opt": record.name, "window": record.windows + 1, "fn": name, "limit": float(limit),
                    "at": places.of_frame(sys._getframe(2))}  # fmt: skip
            with watch.plainly(), self._torch.no_grad():
                if name == "clip_grad_value_":
                    seen = (grad.detach().abs() >= limit).float().mean()
                else:
                    norm = result if name == "clip_grad_norm_" else args[2] if len(args) > 2 else kwargs["total_norm"]
                    seen = self._torch.as_tensor(norm).float()
            read_all(watch, [scaler._scale, seen], lambda values, fact=fact: watch.facts.write(
                "clip", **fact, scale=values[0], seen=values[1]))  # fmt: skip

    # -- steps -----------------------------------------------------------------------------------------------------

    def _before_step(self, record: OptimizerRecord) -> None:
        """A step that no scaler makes, with gradients that are scaled: by how much have they shrunk since backward?"""
        watch = self._watch
        before = self._sizes.pop(record.name, None)
        if before is None or watch.in_scaler_step or watch.late.busy():
            return
        scaler, now = self._still_scaled(record), _size(record.sample_gradient())
        if scaler is None or now is None:
            return
        window = record.windows + 1
        read_all(watch, [now / before, scaler._scale], lambda values: watch.facts.write(
            "scaled_step", opt=record.name, window=window, ratio=values[0], scale=values[1]))  # fmt: skip

    def _after_look(self, record: OptimizerRecord, optimizer: Any) -> None:
        """Parameters of 16 bit after a step: have they ever changed, and did the squares of their gradients survive?"""
        rows: List[List[Any]] = []
        numbers: List[Any] = []
        with self._torch.no_grad():
            for index, group in enumerate(optimizer.param_groups):
                for parameter in group["params"]:
                    if parameter.dtype in self._halves and parameter.grad is not None and len(rows) < MOST_PARAMETERS:
                        self._describe(parameter, optimizer.state.get(parameter) or {}, index, rows, numbers)
        if rows:
            window = record.windows
            read_all(self._watch, numbers, lambda values: self._write_parameters(record.name, window, rows, values))

    def _describe(self, parameter: Any, state: Dict[str, Any], group: int, rows: List[List[Any]], numbers: List[Any]) -> None:
        if not plain(self._torch, parameter) or parameter.grad.is_sparse:
            return
        now = sample(parameter)
        known = self._firsts.get(id(parameter))
        if known is None or known[0]() is not parameter or known[1].shape != now.shape or known[1].device != now.device:
            known = self._firsts[id(parameter)] = (weakref.ref(parameter), now.clone())
        second = next((state[key] for key in SECOND_MOMENTS if getattr(state.get(key), "shape", None) == parameter.shape), None)
        lost = None if second is None else ((sample(second) == 0) & (sample(parameter.grad) != 0)).float().mean()
        rows.append([self._watch.parameters.number(parameter), _short(parameter.dtype),
                     None if second is None else _short(second.dtype), group])  # fmt: skip
        numbers += [(now != known[1]).float().mean(), now.float().abs().median(), lost, (~now.isfinite()).float().mean()]

    def _write_parameters(self, optimizer: str, window: int, rows: List[List[Any]], values: List[Any]) -> None:
        for index, row in enumerate(rows):
            row.extend(values[4 * index : 4 * index + 4])
        self._watch.facts.write("half_params", opt=optimizer, window=window, rows=rows)


def has_unscaled(scaler: Any, optimizer: Any) -> bool:
    """Whether a scaler has divided an optimizer's gradients since its last step."""
    state = scaler._per_optimizer_states.get(id(optimizer))
    return state is not None and getattr(state.get("stage"), "value", READY) != READY


def _size(grad: Any) -> Any:
    return None if grad is None or grad.is_sparse or not readable(grad) else grad.detach().float().norm()


def _short(dtype: Any) -> str:
    return str(dtype).replace("torch.", "")
