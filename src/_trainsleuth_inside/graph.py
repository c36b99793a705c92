"""Walks along the graph that autograd keeps behind a tensor."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Collection, Deque, Dict, Iterable, Iterator, List, Set, Tuple

MOST_NODES = 20_000


def edges(roots: Iterable[Any], most: int = MOST_NODES, enter: Callable[[Any], bool] = lambda node: True) -> Iterator[Tuple[Any, Any]]:
    """Each node with a node that uses it (None for a root), nearest first; what lies behind a node only if it is to be entered."""
    waiting: Deque[Tuple[Any, Any]] = deque((None, root) for root in roots if root is not None)
    seen: Set[Any] = set()
    while waiting and len(seen) < most:
        user, node = waiting.popleft()
        yield user, node
        if node not in seen:
            seen.add(node)
            if enter(node):
                waiting.extend((node, following) for following, _ in node.next_functions if following is not None)


def nodes(roots: Iterable[Any], most: int = MOST_NODES, enter: Callable[[Any], bool] = lambda node: True) -> Iterator[Tuple[Any, Any]]:
    """Each node once, with the first that uses it."""
    seen: Set[Any] = set()
    for user, node in edges(roots, most, enter):
        if node not in seen:
            seen.add(node)
            yield user, node


def leading_to(roots: Iterable[Any], tensors: Collection[Any]) -> Set[Any]:
    """The nodes between the roots and these tensors, which a gradient on its way to them has to pass."""
    wanted, made_by = {id(tensor) for tensor in tensors}, {tensor.grad_fn for tensor in tensors}
    users: Dict[Any, List[Any]] = {}
    ends: List[Any] = []
    for user, node in edges(roots):
        if user is not None:
            users.setdefault(node, []).append(user)
        if id(getattr(node, "variable", None)) in wanted or node in made_by:
            ends.append(node)
    return above(users, ends)


def above(users: Dict[Any, List[Any]], starts: Iterable[Any]) -> Set[Any]:
    """Every node that uses one of these, directly or by way of others."""
    found: Set[Any] = set()
    waiting = list(starts)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in found:
                found.add(user)
                waiting.append(user)
    return found


def signed(number: int) -> int:
    """Torch tells a negative axis as a number of 64 bits without a sign."""
    return number - (1 << 64) if number >= 1 << 63 else number
