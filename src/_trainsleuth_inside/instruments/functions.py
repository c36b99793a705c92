"""Checks the backward of the program's own autograd Functions against the slope of their forward, at inputs the program really gave.

For a random direction the derivative is measured by two forwards close to each other, and computed by the Function's own backward.
Some Functions disagree on purpose: a forward that gives its input back (gradient reversal), or one with steps (rounding, a
spike), whose slope is zero nearly everywhere. Those are left alone.
"""

from __future__ import annotations

import dis
from typing import Any, Dict, List, Optional, Tuple

from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.instruments.examination import leave
from _trainsleuth_inside.places import USER, kind_of

DIRECTIONS, ELEMENTS = 5, 24
MOST_NUMBERS = 20_000_000
APART = 0.03  # share by which both derivatives must differ


class FunctionExamination:
    def __init__(self, watch: Any, probe: Probe) -> None:
        self._watch, self._torch, self._probe = watch, watch.torch, probe
        self._calls: Dict[Any, Any] = {}
        self._armed = False
        watch.when_backward_ended.append(probe.guard(self._after_backward))

    def arm(self) -> None:
        if self._armed:
            return
        self._armed = True
        base = self._torch.autograd.Function
        apply = base.__dict__["apply"].__func__
        calls = self._calls

        def remembering(kind: Any, *args: Any, **kwargs: Any) -> Any:
            code = getattr(kind.forward, "__code__", None)
            if kind not in calls and code is not None and kind_of(code.co_filename) == USER:
                calls[kind] = [value.detach().clone() if hasattr(value, "detach") else value for value in args]
            return apply(kind, *args, **kwargs)

        base.apply = classmethod(remembering)
        self._apply = apply

    def _after_backward(self, _: Any) -> None:
        if not self._calls or self._watch.backwards < 2:
            return
        rows = [row for row in (self._check(kind, args) for kind, args in list(self._calls.items())) if row is not None]
        leave(self._watch, "functions", what="functions", functions=rows)

    def _check(self, kind: Any, args: List[Any]) -> Optional[Dict[str, Any]]:
        about = {"name": kind.__name__, "backward": _line(kind.backward), "forward": _line(kind.forward)}
        try:
            return {**about, **self._measured(kind, args)}
        except Exception as problem:
            return {**about, "verdict": "not checked", "why": f"{type(problem).__name__}: {problem}"[:200]}

    def _measured(self, kind: Any, args: List[Any]) -> Dict[str, Any]:
        torch = self._torch
        wide = [value.double() if _floating(value) else value for value in args]
        if sum(value.numel() for value in wide if _floating(value)) > MOST_NUMBERS:
            return {"verdict": "not checked", "why": "its inputs are too large"}
        at = [index for index, value in enumerate(wide) if _floating(value) and value.numel()]
        first, again = self._outputs(kind, wide), self._outputs(kind, wide)
        if any(not torch.equal(a, b) for a, b in zip(first, again)):
            return {"verdict": "not checked", "why": "its forward draws random numbers"}
        if any(a.shape == wide[index].shape and torch.equal(a.double(), wide[index]) for a in first for index in at):
            return {"verdict": "on purpose", "why": "its forward gives its input back"}
        exact = all(output.dtype == torch.float64 for output in first)
        step, apart = (1e-6, APART) if exact else (1e-2, 5 * APART)
        rows: List[Tuple[int, float, float]] = []
        for index in at:
            for direction in range(DIRECTIONS):
                pair = self._both(kind, wide, index, step, 1000 * index + direction)
                if pair is not None:
                    rows.append((index, *pair))
        found = _verdict(rows, apart)
        if found["verdict"] == "wrong" and not all(self._sloped(kind, wide, index, step, apart) for index in found["inputs"]):
            return {"verdict": "on purpose", "why": "they differ only where the forward is flat"}
        return found

    def _sloped(self, kind: Any, args: List[Any], index: int, step: float, apart: float) -> bool:
        """Whether single elements differ also where the forward has a slope; a gradient passed through a flat part is meant."""
        numbers = self._torch.randperm(args[index].numel(), generator=self._torch.Generator().manual_seed(1))[:ELEMENTS]
        pairs = [self._both(kind, args, index, step, 7, int(number)) for number in numbers]
        known = [pair for pair in pairs if pair is not None]
        scale = max((abs(value) for pair in known for value in pair), default=0.0)
        wrong = [m for m, c in known if abs(m) > 1e-4 * scale and abs(m - c) > apart * max(abs(m), abs(c))]
        return len(wrong) >= max(1, len(known) // 4)

    def _outputs(self, kind: Any, args: List[Any]) -> List[Any]:
        with self._torch.no_grad():
            result = self._apply(kind, *[value.clone() if hasattr(value, "clone") else value for value in args])
        results = result if isinstance(result, tuple) else (result,)
        return [output for output in results if _floating(output)]

    def _both(
        self, kind: Any, args: List[Any], index: int, step: float, seed: int, element: Optional[int] = None
    ) -> Optional[Tuple[float, float]]:
        """The derivative along a random direction of one input, or along one element: measured, and as backward claims."""
        torch = self._torch
        generator = torch.Generator().manual_seed(seed)
        value = args[index]
        direction = torch.randn(value.shape, generator=generator, dtype=torch.float64)
        if element is not None:
            direction = (
                torch.zeros(value.numel(), dtype=torch.float64).index_fill_(0, torch.tensor([element]), 1.0).view(value.shape)
            )
        with torch.enable_grad():
            given = [item.clone().requires_grad_(at == index) if _floating(item) else item for at, item in enumerate(args)]
            inside = [item * 1 if at == index else item for at, item in enumerate(given)]  # no leaf: forward may write into it
            result = self._apply(kind, *inside)
            results = [r for r in (result if isinstance(result, tuple) else (result,)) if _floating(r) and r.requires_grad]
            if not results:
                return None
            weights = [0.01 * torch.randn(r.shape, generator=generator, dtype=torch.float64) for r in results]
            total = sum((r.double() * w).sum() for r, w in zip(results, weights))
            (gradient,) = torch.autograd.grad(total, given[index], allow_unused=True)
        if gradient is None:
            return None
        sides = []
        for sign in (1.0, -1.0):
            moved = [item + sign * step * direction if at == index else item for at, item in enumerate(args)]
            outputs = self._outputs(kind, moved)
            sides.append(float(sum((o.double() * w).sum() for o, w in zip(outputs, weights))))
        return (sides[0] - sides[1]) / (2 * step), float((gradient.double() * direction).sum())


def _verdict(rows: List[Tuple[int, float, float]], apart: float) -> Dict[str, Any]:
    wrong: List[int] = []
    for index in sorted({row[0] for row in rows}):
        pairs = [(measured, claimed) for which, measured, claimed in rows if which == index]
        scale = max(abs(value) for pair in pairs for value in pair)
        flat = sum(abs(measured) < 1e-6 * scale for measured, _ in pairs)
        different = sum(
            abs(measured - claimed) > apart * max(abs(measured), abs(claimed), 0.1 * scale) for measured, claimed in pairs
        )
        if scale > 0 and flat == 0 and different >= len(pairs) - 1:
            wrong.append(index)
    pairs = [(measured, claimed) for which, measured, claimed in rows if which in wrong]
    if not wrong:
        return {"verdict": "right"}
    return {"verdict": "wrong", "inputs": wrong, "pairs": pairs[:4], "factor": _factor(pairs)}


def _factor(pairs: List[Tuple[float, float]]) -> Optional[float]:
    """The constant by which backward is off, if it is one."""
    ratios = [claimed / measured for measured, claimed in pairs if measured]
    if not ratios or max(ratios) - min(ratios) > 0.02 * max(abs(ratio) for ratio in ratios):
        return None
    return sum(ratios) / len(ratios)


def _floating(value: Any) -> bool:
    return hasattr(value, "is_floating_point") and bool(value.is_floating_point())


def _line(function: Any) -> Optional[List[Any]]:
    """The last line of a function: what it gives back."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    return [code.co_filename, max(line for _, line in dis.findlinestarts(code) if line), code.co_name]
