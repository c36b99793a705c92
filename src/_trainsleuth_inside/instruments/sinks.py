"""Where a bad number does harm: in the loss, in the gradients, or in a value that made the program stop."""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Set, Tuple

from _trainsleuth_inside.graph import above, edges
from _trainsleuth_inside.instruments.numbers import CLEAN, state
from _trainsleuth_inside.probes import crash

MOST_NODES = 100_000


def bad_gradient(watch: Any) -> Optional[Any]:
    """The first gradient of an owned parameter that is not finite."""
    for parameter in watch.owned_parameters():
        if parameter.grad is not None and state(watch.torch, parameter.grad) != CLEAN:
            return parameter.grad
    return None


def watch_for_the_end(then: Any) -> None:
    """Call `then` with the frames of the program when it stops by an exception or by sys.exit, before anybody else hears of it."""
    hook, leave = sys.excepthook, sys.exit

    def excepthook(kind: Any, value: Any, traceback: Any) -> None:
        then(crash.frames_of(traceback))
        hook(kind, value, traceback)

    def exit(status: Any = None, /) -> NoReturn:
        if status not in (None, 0, False):
            then(crash.frames_above(sys._getframe(1)))
        leave(status)

    sys.excepthook, sys.exit = excepthook, exit


def leaves(torch: Any, value: Any, path: str = "", level: int = 0) -> Iterator[Tuple[str, Any]]:
    """Every tensor of a batch with the field it stands in."""
    if isinstance(value, torch.Tensor):
        yield path or "0", value
    elif level < 4 and isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(torch, item, f"{path}.{key}".lstrip("."), level + 1)
    elif level < 4 and isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from leaves(torch, item, f"{path}[{index}]" if path else str(index), level + 1)


def file_of(dataset: Any, index: Any) -> Optional[str]:
    """The file of a sample, if the data set keeps a list of files as long as itself."""
    try:
        length = len(dataset)
        position = int(index)
    except (TypeError, ValueError, NotImplementedError):
        return None
    attributes: Dict[str, Any] = getattr(dataset, "__dict__", {})
    for value in attributes.values():
        if isinstance(value, (list, tuple)) and len(value) == length and 0 <= position < length:
            entry = value[position]
            first = entry[0] if isinstance(entry, (list, tuple)) and entry else entry
            if isinstance(first, str) or hasattr(first, "__fspath__"):
                return str(first)
    return None


def used_by(root: Any, number: Optional[int], levels: int = 3) -> List[str]:
    """Names of the autograd nodes that used the result of the node with this number, up to a few levels towards the loss.

    A `where` both sides of which come from that node chooses nothing away, and is left out.
    """
    users: Dict[Any, List[Any]] = {}
    wanted: List[Any] = []
    for user, node in edges([root], MOST_NODES):
        if user is not None:
            users.setdefault(node, []).append(user)
        if node._sequence_nr() == number and node not in wanted and node.name() != "torch::autograd::AccumulateGrad":
            wanted.append(node)
    behind = {*wanted, *above(users, wanted)}
    names: List[str] = []
    for _ in range(levels):
        wanted = [user for node in wanted for user in users.get(node, [])][:16]
        names += [node.name() for node in wanted if not ("Where" in node.name() and _on_both_sides(node, behind))]
    return names


def _on_both_sides(node: Any, behind: Set[Any]) -> bool:
    return sum(1 for branch, _ in node.next_functions if branch in behind) > 1
