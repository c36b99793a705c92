"""What is worth knowing of a tensor's numbers: whether they are all finite, and their extremes."""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List

CLEAN, INF, NAN = "", "inf", "nan"


def state(torch: Any, tensor: Any) -> str:
    """NAN, INF or CLEAN; one sum settles nearly all cases."""
    if not holds_numbers(torch, tensor):
        return CLEAN
    values = tensor.detach()
    if values.dtype not in (torch.float32, torch.float64):
        values = values.abs().float() if values.is_complex() else values.float()
    if math.isfinite(float(values.sum())):
        return CLEAN
    if bool(torch.isnan(values).any()):
        return NAN
    return INF if bool(torch.isinf(values).any()) else CLEAN  # a sum of large numbers may overflow on its own


def holds_numbers(torch: Any, tensor: Any) -> bool:
    return (
        isinstance(tensor, torch.Tensor)
        and (tensor.is_floating_point() or tensor.is_complex())
        and tensor.layout == torch.strided
        and tensor.device.type != "meta"
        and tensor.numel() > 0
        and not tensor.is_quantized
    )


def describe(torch: Any, tensor: Any) -> Dict[str, Any]:
    """Shape, type and extremes of one operand."""
    about: Dict[str, Any] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).replace("torch.", "")}
    if not (holds_numbers(torch, tensor) or _counts(torch, tensor)):
        return about
    values = tensor.detach()
    values = (values.abs() if values.is_complex() else values).double().flatten()
    finite = values[torch.isfinite(values)]
    about["nan"] = int(torch.isnan(values).sum())
    about["inf"] = int(torch.isinf(values).sum())
    if finite.numel():
        about.update(least=float(finite.min()), most=float(finite.max()))
        about["zeros"] = int((finite == 0).sum())
        nonzero = finite[finite != 0].abs()
        about["smallest"] = float(nonzero.min()) if nonzero.numel() else 0.0
        about["whole"] = bool((finite == finite.round()).all())
    return about


def _counts(torch: Any, tensor: Any) -> bool:
    """Integers: they are never bad themselves, but a division by one of them may be."""
    integers = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
    return tensor.dtype in integers and tensor.layout == torch.strided and tensor.device.type != "meta" and tensor.numel() > 0


def tensors_in(torch: Any, value: Any, level: int = 0) -> Iterator[Any]:
    """Every tensor in nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif level < 6 and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(torch, item, level + 1)
    elif level < 6 and isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(torch, item, level + 1)


def bad_rows(torch: Any, tensor: Any, most: int = 16) -> List[int]:
    """Which entries along the first dimension hold a number that is not finite."""
    if tensor.dim() == 0:
        return []
    flat = tensor.detach().reshape(tensor.shape[0], -1)
    if flat.is_complex():
        flat = flat.abs()
    rows = (~torch.isfinite(flat)).any(1).nonzero().flatten()
    return [int(row) for row in rows[:most]]


def storage_of(tensor: Any) -> int:
    """Which memory it lies in: the same for all views of one tensor."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return id(tensor)
