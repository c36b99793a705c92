"""What a data set keeps of one sample in memory: arrays, tensors or lists that are as long as the data set itself."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Tuple

MOST_FIELDS = 16
LEAST_NUMBERS = 8  # of a sample; fewer are a label, a weight or a counter

Field = Tuple[str, str, Any]  # where it is kept, in what, and what is kept of this sample


def stored(torch: Any, dataset: Any, index: Any) -> List[Field]:
    """The fields of a sample that hold numbers, as they lie in memory."""
    dataset, index = behind_subsets(dataset, index)
    if not isinstance(index, int):
        return []
    try:
        length = len(dataset)
    except (TypeError, NotImplementedError):
        return []
    found: List[Field] = []
    for name, holder in _holders(dataset):
        kept = _entry(torch, holder, index, length)
        if kept is not None and len(found) < MOST_FIELDS:
            found.append((name, "tensor" if isinstance(holder, torch.Tensor) else "array" if _is_array(holder) else "list", kept))
    return found


def behind_subsets(dataset: Any, index: Any) -> Tuple[Any, Any]:
    for _ in range(8):
        inner, indices = getattr(dataset, "dataset", None), getattr(dataset, "indices", None)
        if inner is None or indices is None or not isinstance(index, int):
            break
        dataset, index = inner, int(indices[index])
    return dataset, index


def _holders(dataset: Any) -> Iterator[Tuple[str, Any]]:
    """What the data set, and the objects that it has, keep under a name."""
    for name, value in list(getattr(dataset, "__dict__", {}).items()):
        if isinstance(value, tuple) and name == "tensors":
            yield from ((name, one) for one in value)
        yield name, value
        inner = getattr(value, "__dict__", None)
        if isinstance(inner, dict) and not hasattr(value, "dtype") and not callable(value):
            yield from ((f"{name}.{below}", one) for below, one in list(inner.items())[:64])


def _entry(torch: Any, holder: Any, index: int, length: int) -> Any:
    """What is kept of this sample, if the holder has one entry for each."""
    if isinstance(holder, torch.Tensor) or _is_array(holder):
        if holder.ndim < 2 or holder.shape[0] != length:
            return None
        return _numbers(torch, holder[index])
    if isinstance(holder, (list, tuple)) and len(holder) == length and 0 <= index < length:
        entry = holder[index]
        parts = entry if isinstance(entry, (list, tuple)) else list(entry.values()) if isinstance(entry, dict) else [entry]
        return next((kept for part in parts[:4] if (kept := _numbers(torch, part)) is not None), None)
    return None


def _is_array(value: Any) -> bool:
    """A numpy array, without numpy being imported here; one that lies in a file is not read."""
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def _numbers(torch: Any, value: Any) -> Optional[Any]:
    if isinstance(value, torch.Tensor):
        plain = value.device.type == "cpu" and value.layout == torch.strided
        return value if plain and value.numel() >= LEAST_NUMBERS else None
    if _is_array(value) and value.dtype.kind in "fiu" and value.size >= LEAST_NUMBERS:
        return value
    return None


def copied(value: Any) -> Any:
    return value.detach().clone() if hasattr(value, "detach") else value.copy()


def same(one: Any, other: Any) -> bool:
    """Whether two copies hold the same numbers; NaN is equal to itself."""
    equal = (one == other) | ((one != one) & (other != other))
    return bool(equal.all())
