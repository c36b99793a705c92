"""Knob `operation-guarded`: the one operation that made the first bad number gets operands that it bears.

Changes        at the named line: logarithms, roots and divisors stay away from zero, exponents stay below the overflow, inverse functions
               within their range, a masked row of a softmax keeps an entry, a spread of one sample is zero, CTC leaves impossible targets
               out, and 16 bit becomes 32; the same operation in other lines of that function is guarded, too
Mechanism      the number that is not finite
Not applicable when nothing at that line has such operands
"""

from __future__ import annotations

import math
import sys
from typing import Any, Callable, Dict, List, Sequence, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.knobs.acting import lines, says

TINY = 1e-6
LARGEST = 60.0  # of an exponent
ABOVE_ZERO = (
    "log",
    "log2",
    "log10",
    "sqrt",
    "rsqrt",
    "log_",
    "sqrt_",
    "pow",
    "__pow__",
    "__rpow__",
    "xlogy",
    "norm",
    "vector_norm",
)
DIVISIONS = ("div", "true_divide", "__truediv__", "__itruediv__", "div_")
EXPONENTIALS = ("exp", "expm1", "exp2", "exp_", "cosh", "sinh")
SOFTMAXES = ("softmax", "log_softmax", "logsumexp")
RANGES = {  # where a function is defined, less a little
    "log1p": (TINY - 1, None), "asin": (TINY - 1, 1 - TINY), "acos": (TINY - 1, 1 - TINY), "arcsin": (TINY - 1, 1 - TINY),
    "arccos": (TINY - 1, 1 - TINY), "atanh": (TINY - 1, 1 - TINY), "arctanh": (TINY - 1, 1 - TINY), "erfinv": (TINY - 1, 1 - TINY),
    "logit": (TINY, 1 - TINY), "acosh": (1 + TINY, None), "arccosh": (1 + TINY, None),
}  # fmt: skip
SPREADS = ("std", "var", "std_mean", "var_mean")


def turn(watch: Any, at: Sequence[Sequence[Any]] = (), half: bool = False) -> None:
    from torch.overrides import TorchFunctionMode

    torch, wanted, acted = watch.torch, set(lines(at)), says(watch, "operation-guarded")
    guards = _guards(torch)
    alike = set()  # file, function and operation that were met at the named lines

    class Guarded(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            name = getattr(function, "__name__", "")
            if name in guards or half:
                place = places.of_frame(sys._getframe(1))
                if place is not None and (place[0], place[1]) in wanted:
                    alike.add((place[0], place[2], name))
                if place is not None and (place[0], place[2], name) in alike:
                    acted(operation=name)
                    if half:
                        return _in_32_bits(torch, function, args, kwargs)
                    args, kwargs = guards[name](list(args), dict(kwargs))
            return function(*args, **kwargs)

    Guarded().__enter__()


Guard = Callable[[List[Any], Dict[str, Any]], Tuple[List[Any], Dict[str, Any]]]


def _guards(torch: Any) -> Dict[str, Guard]:
    def tensor(value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.is_floating_point()

    def above_zero(args: List[Any], kwargs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
        for index in range(min(2, len(args))):
            if tensor(args[index]):
                value = args[index]
                unbearable = value.abs() < 100 * torch.finfo(value.dtype).tiny  # all else keeps its numbers, to the last digit
                args[index] = torch.where(unbearable, torch.full_like(value, TINY), value).abs()
        return args, kwargs

    def within(least: Any, most: Any) -> Guard:
        def guard(args: List[Any], kwargs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
            return [args[0].clamp(least, most), *args[1:]], kwargs

        return guard

    def divisor(args: List[Any], kwargs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
        for key in [1] if len(args) > 1 else []:
            if isinstance(args[key], torch.Tensor):
                value = args[key]
                args[key] = torch.where(value == 0, torch.ones_like(value), value)
        return args, kwargs

    def exponent(args: List[Any], kwargs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
        return [args[0].clamp(-LARGEST, LARGEST), *args[1:]], kwargs

    def masked(args: List[Any], kwargs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
        return [args[0].clamp_min(torch.finfo(args[0].dtype).min), *args[1:]], kwargs

    def attended(args: List[Any], kwargs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
        for name in ("key_padding_mask", "attn_mask"):
            mask = kwargs.get(name)
            if isinstance(mask, torch.Tensor):
                hidden = mask if mask.dtype == torch.bool else mask == -math.inf
                if name == "attn_mask" and mask.dtype == torch.bool and "key_padding_mask" not in kwargs:
                    hidden = ~mask  # scaled_dot_product_attention says what may be seen
                kwargs[name] = torch.where(hidden.all(-1, keepdim=True), ~mask if mask.dtype == torch.bool else torch.zeros_like(mask), mask)
        return args, kwargs

    def spread(args: List[Any], kwargs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
        sizes = args[0].shape
        axes = kwargs.get("dim", next((value for value in args[1:] if not isinstance(value, bool)), None))
        counted = sizes.numel() if axes is None else math.prod(sizes[axis] for axis in ([axes] if isinstance(axes, int) else axes))
        if counted > 1:
            return args, kwargs
        kwargs.pop("unbiased", None)
        return [value for value in args if not isinstance(value, bool)], {**kwargs, "correction": 0}

    def ctc(args: List[Any], kwargs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
        return args[:6], {**kwargs, "zero_infinity": True}

    found: Dict[str, Guard] = {
        "ctc_loss": ctc, "reciprocal": above_zero, "multi_head_attention_forward": attended, "scaled_dot_product_attention": attended,
    }  # fmt: skip
    for names, guard in (
        (ABOVE_ZERO, above_zero),
        (DIVISIONS, divisor),
        (EXPONENTIALS, exponent),
        (SOFTMAXES, masked),
        (SPREADS, spread),
    ):
        found.update({name: guard for name in names})
    found.update({name: within(*ends) for name, ends in RANGES.items()})
    return found


def _in_32_bits(torch: Any, function: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
    def wide(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16):
            return value.float()
        return type(value)(map(wide, value)) if type(value) in (list, tuple) else value

    with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
        return function(*wide(tuple(args)), **{name: wide(value) for name, value in kwargs.items()})
