"""Finds weights that do not sum to one where they are summed: a softmax over one axis, and a matrix product that contracts another."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, List, Optional, Tuple

from _trainsleuth_inside.graph import signed

PRODUCTS = ("BmmBackward0", "MmBackward0")
SAME_SHAPE = ("MulBackward0", "NativeDropoutBackward0", "MaskedFillBackward0", "ToCopyBackward0", "CloneBackward0", "SliceBackward0")
VIEWS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")
FARTHEST = 12  # nodes between a product and the softmax of its weights


def summed_elsewhere(nodes: Iterable[Any]) -> List[Tuple[List[int], int]]:
    """Shape and axis of each softmax whose last axis is summed over, while it runs over another one."""
    return [found for node in nodes if node.name() in PRODUCTS for found in _weights_of(node)]


def _weights_of(product: Any) -> Iterator[Tuple[List[int], int]]:
    node = product.next_functions[0][0]
    shape = _shape(node)
    axis: Optional[int] = None if shape is None else len(shape) - 1
    for _ in range(FARTHEST):
        if node is None or axis is None:
            return
        shape, name = _shape(node), node.name()
        if shape is None:
            return
        if name == "SoftmaxBackward0":
            over = signed(int(node._saved_dim)) % len(shape)
            if axis == len(shape) - 1 and over != axis and shape[over] > 1:
                yield shape, over
            return
        node, axis = node.next_functions[0][0], _before(node, name, axis, shape)


def _before(node: Any, name: str, axis: int, shape: List[int]) -> Optional[int]:
    """Which axis of what this node was given has become `axis` of its result; None where that cannot be told."""
    if name in SAME_SHAPE:
        return axis
    given = _shape(node.next_functions[0][0])
    if given is None:
        return None
    if name in VIEWS:
        last = max((at for at, size in enumerate(given) if size > 1), default=-1)  # einsum adds axes of one element
        return last if axis == len(shape) - 1 and last >= 0 and given[last] == shape[-1] else None
    if name == "ExpandBackward0":
        return axis - (len(shape) - len(given))
    if name == "PermuteBackward0":
        return signed(int(node._saved_dims[axis])) % len(given)
    if name in ("UnsqueezeBackward0", "SelectBackward0"):
        at = signed(int(node._saved_dim)) % max(len(shape), len(given))
        if name == "SelectBackward0":
            return axis + 1 if axis >= at else axis
        return None if axis == at else axis - 1 if axis > at else axis
    return None


def _shape(node: Any) -> Optional[List[int]]:
    metadata = getattr(node, "_input_metadata", None)
    return [int(size) for size in metadata[0].shape] if metadata else None
