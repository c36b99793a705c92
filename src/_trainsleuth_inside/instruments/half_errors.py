"""What 16 bit does to each module: its outputs and gradients beside those of 32 bit, made from the same inputs and the same gradient.

In a window that is looked at, each call of a module under autocast is followed by two more, aside from the program's graph: one as it
is, and one without autocast on inputs cast to 32 bit, both with the random numbers and the buffers of the real call. When the real
backward has brought the gradient of the output, it is sent through both.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Dict, FrozenSet, List, Optional

from _trainsleuth_inside import places
from _trainsleuth_inside.addresses import Addresses
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.knobs.keep_32 import HALVES, changed, device_of, has_half, tensors

MOST_ROWS = 2000


class Twin:
    """One call of a module, computed twice, waiting for the gradient of its output."""

    def __init__(self, row: Dict[str, Any], module: Any, sides: Any, count: int) -> None:
        self.row = row
        self.module = module
        self.sides = sides  # (inputs, outputs) in 16 bit, and in 32
        self.gradients: List[Any] = [None] * count


def begin(watch: Any, windows: FrozenSet[int]) -> None:
    Comparison(watch, Probe("half errors", watch.facts), windows)


class Comparison:
    def __init__(self, watch: Any, probe: Probe, windows: FrozenSet[int]) -> None:
        self._watch, self._torch = watch, watch.torch
        self._windows, self._last = windows, max(windows)
        self._book = Addresses()
        self._rows: Dict[str, Dict[str, Any]] = {}
        self._twins: List[Twin] = []
        self._root: Any = None
        self._aside = False
        self._prepared, self._compared = probe.guard(self._prepare), probe.guard(self._compare)
        base = self._torch.nn.Module
        self._call = base.__call__
        comparison = self

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            return comparison.called(self, args, kwargs)

        base.__call__ = __call__
        watch.skip_when_compiling.append(__call__.__code__)
        watch.when_backward_ended.append(probe.guard(self._backward_ended))
        watch.when_window_closes.append(probe.guard(self._window_closed))

    def called(self, module: Any, args: Any, kwargs: Any) -> Any:
        torch = self._torch
        if self._aside or torch.compiler.is_compiling():
            return self._call(module, *args, **kwargs)
        outermost = self._root is None
        if outermost:
            self._root = module
        try:
            if self._watch.windows + 1 not in self._windows or not torch.is_grad_enabled():
                return self._call(module, *args, **kwargs)
            before = self._prepared(module, args, kwargs)
            output = self._call(module, *args, **kwargs)
            if before is not None:
                self._compared(module, before, output)
            return output
        finally:
            if outermost:
                self._root = None

    def _prepare(self, module: Any, args: Any, kwargs: Any) -> Optional[Dict[str, Any]]:
        """What a second call needs to be the same as the first; None where nothing is of 16 bit."""
        torch = self._torch
        device = device_of(torch, module, (args, kwargs))
        address = self._book.of(module, self._root)
        if not (torch.is_autocast_enabled(device) or has_half(torch, (args, kwargs))) or len(self._rows) >= MOST_ROWS:
            return None
        frame = sys._getframe(2)
        while frame.f_back is not None and places.kind_of(frame.f_code.co_filename) == places.OURS:
            frame = frame.f_back
        direct = places.kind_of(frame.f_code.co_filename) == places.USER
        kinds = [_kind(torch, value) for value in args] + ["%s=%s" % (name, _kind(torch, value)) for name, value in kwargs.items()]
        row = self._rows.setdefault(address, {
            "module": address, "kind": type(module).__name__, "children": any(True for _ in module.children()), "calls": 0,
            "weights": sum(parameter.numel() for parameter in module.parameters()), "at": places.of_frame(frame) if direct else None,
            "given": kinds, "device": device, "output": 0.0, "gradient": 0.0, "vanished": 0.0, "overflowed": 0.0, "overflows": 0,
            "seconds": 0.0,
        })  # fmt: skip
        row["calls"] += 1
        return {"row": row, "device": device, "chance": self._chance(device), "buffers": _buffers(module),
                "given": changed(torch, (args, kwargs), lambda tensor: tensor.detach().clone())}  # fmt: skip

    def _compare(self, module: Any, before: Dict[str, Any], output: Any) -> None:
        torch, row = self._torch, before["row"]
        real = list(tensors(torch, output))
        chance, buffers = self._chance(before["device"]), _buffers(module)
        self._aside = True
        try:
            began = time.perf_counter()
            half = self._again(module, before, lambda tensor: tensor)
            row["seconds"] += time.perf_counter() - began
            with torch.autocast(before["device"], enabled=False):
                full = self._again(module, before, lambda tensor: tensor.float() if str(tensor.dtype) in HALVES else tensor)
        finally:
            self._aside = False
            self._set_chance(before["device"], chance)
            _restore(module, buffers)
        row["overflows"] += any([self._add(row, "output", one, other) for one, other in zip(half[1], full[1])])
        if len(half[1]) == len(full[1]) == len(real) and any(tensor.requires_grad for tensor in real):
            twin = Twin(row, module, (half, full), len(real))
            for index, tensor in enumerate(real):
                if tensor.requires_grad:
                    tensor.register_hook(_keeper(twin, index))
            self._twins.append(twin)

    def _again(self, module: Any, before: Dict[str, Any], cast: Any) -> Any:
        """The inputs, those that gradients are wanted for, and the outputs of one more call."""
        self._set_chance(before["device"], before["chance"])
        _restore(module, before["buffers"])
        leaves: List[Any] = []

        def fresh(tensor: Any) -> Any:
            leaf = cast(tensor.detach().clone())
            if leaf.is_floating_point():
                leaves.append(leaf.requires_grad_())
                return leaf.clone()  # a module that works in place may not write into a leaf
            return leaf

        args, kwargs = changed(self._torch, before["given"], fresh)
        return leaves, list(tensors(self._torch, self._call(module, *args, **kwargs)))

    def _backward_ended(self, _: Any) -> None:
        """The gradients that came back to the real outputs go through both twins of each call."""
        torch, twins = self._torch, self._twins
        self._twins = []
        for twin in twins:
            wanted = [index for index, gradient in enumerate(twin.gradients) if gradient is not None]
            if not wanted or not all(bool(torch.isfinite(twin.gradients[index]).all()) for index in wanted):
                continue  # it is given a gradient that is bad already, which is no fault of its own
            pair = [self._gradients(twin, side, wanted) for side in twin.sides]
            both = [(one, other) for one, other in zip(*pair) if one is not None and other is not None]
            twin.row["overflows"] += any([self._add(twin.row, "gradient", one, other) for one, other in both])

    def _gradients(self, twin: Twin, side: Any, wanted: List[int]) -> List[Any]:
        leaves, outputs = side
        ends = [(outputs[index], twin.gradients[index]) for index in wanted if outputs[index].requires_grad]
        sources = leaves + [parameter for parameter in twin.module.parameters() if parameter.requires_grad]
        if not ends or not sources:
            return []
        given = [gradient.to(end.dtype) for end, gradient in ends]
        return list(self._torch.autograd.grad([end for end, _ in ends], sources, given, retain_graph=True, allow_unused=True))

    def _add(self, row: Dict[str, Any], what: str, half: Any, full: Any) -> bool:
        """The largest error so far, as a share of the size of what 32 bit gives; whether 16 bit alone overflows."""
        torch = self._torch
        if not full.is_floating_point() or half.shape != full.shape or not full.numel():
            return False
        half, full = half.detach().double(), full.detach().double()
        sound = torch.isfinite(full)
        both = sound & torch.isfinite(half)
        bad: float = float((sound & ~both).sum()) / int(full.numel())
        size = float(full[sound].norm())
        if size > 0:
            row[what] = max(row[what], float((half[both] - full[both]).norm()) / size)
        if what == "gradient":
            there = sound & (full != 0)
            row["vanished"] = max(row["vanished"], float((there & (half == 0)).sum()) / max(1, int(there.sum())))
        row["overflowed"] = max(row["overflowed"], bad)
        return bad > 0

    def _window_closed(self, _: Any) -> None:
        watch = self._watch
        if watch.windows in self._windows and self._rows:
            watch.facts.write("knob_acted", knob="compare-halves", windows=watch.windows, rows=list(self._rows.values()))
        if watch.windows >= self._last:
            watch.end()
            watch.facts.write("stop", windows=watch.windows, backwards=watch.backwards)
            os._exit(0)

    def _chance(self, device: str) -> Any:
        torch = self._torch
        return torch.get_rng_state(), torch.cuda.get_rng_state() if device == "cuda" else None

    def _set_chance(self, device: str, chance: Any) -> None:
        self._torch.set_rng_state(chance[0])
        if chance[1] is not None:
            self._torch.cuda.set_rng_state(chance[1])


def _keeper(twin: Twin, index: int) -> Any:
    def keep(gradient: Any) -> None:
        twin.gradients[index] = gradient.detach().clone()

    return keep


def _buffers(module: Any) -> Dict[str, Any]:
    return {name: buffer.detach().clone() for name, buffer in module.named_buffers()}


def _restore(module: Any, buffers: Dict[str, Any]) -> None:
    for name, buffer in module.named_buffers():
        if name in buffers:
            buffer.data.copy_(buffers[name])  # past autograd: the real graph may hold this buffer


def _kind(torch: Any, value: Any) -> str:
    """What an argument is, as far as a patch must know it."""
    if isinstance(value, torch.Tensor):
        return "half" if str(value.dtype) in HALVES else "tensor"
    return "structure" if has_half(torch, value) else "other"
