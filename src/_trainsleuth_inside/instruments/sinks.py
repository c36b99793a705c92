"""Where a bad number does harm: in the loss, in the gradients, or in a value that made the program stop."""

from __future__ import annotations

import math
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from _trainsleuth_inside.instruments.numbers import CLEAN, state
from _trainsleuth_inside.places import USER, kind_of

MOST_LOCALS = 400
MOST_NODES = 100_000


def bad_gradient(watch: Any) -> Optional[Any]:
    """The first gradient of an owned parameter that is not finite."""
    for parameter in watch.owned_parameters():
        if parameter.grad is not None and state(watch.torch, parameter.grad) != CLEAN:
            return parameter.grad
    return None


def bad_locals(torch: Any, traceback: Any) -> Iterator[Tuple[str, Any]]:
    """Values of the program's own frames that are NaN or Inf when it stops, innermost frame first: small tensors, plain numbers."""
    frames: List[Any] = []
    while traceback is not None:
        if kind_of(traceback.tb_frame.f_code.co_filename) == USER:
            frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    for frame in reversed(frames):
        for name, value in list(frame.f_locals.items())[:MOST_LOCALS]:
            if isinstance(value, torch.Tensor):
                if value.numel() <= 1 and state(torch, value) != CLEAN:
                    yield name, value
            elif isinstance(value, float) and math.isnan(value):
                yield name, value


def watch_for_the_end(then: Any) -> None:
    """Call `then` with the traceback of an exception that nothing caught, before anybody else hears of it."""
    previous = sys.excepthook

    def excepthook(kind: Any, value: Any, traceback: Any) -> None:
        then(kind, value, traceback)
        previous(kind, value, traceback)

    sys.excepthook = excepthook


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
    """Names of the autograd nodes that used the result of the node with this number, up to a few levels towards the loss."""
    users: Dict[int, List[Any]] = {}
    waiting, seen, wanted = [root], {root}, []
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        for following, _ in node.next_functions:
            if following is None:
                continue
            users.setdefault(id(following), []).append(node)
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    if number is not None:
        wanted = [node for node in seen if node._sequence_nr() == number and node.name() != "torch::autograd::AccumulateGrad"]
    names: List[str] = []
    for _ in range(levels):
        wanted = [user for node in wanted for user in users.get(id(node), [])][:16]
        names += [node.name() for node in wanted]
    return names
