"""Whether weights, inputs and results of a model still hold the numbers that its forward has seen when backward begins.

PyTorch counts changes itself, and refuses a backward whose tensors were changed. What it cannot see is a write through `.data`, through
a numpy array on the same memory, or by a fused optimizer: same version, other numbers. Samples of bounded size are compared, in those of
the first hundred windows that are looked at deeply.
"""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, Optional, Set, Tuple

from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.graph import nodes
from _trainsleuth_inside.movement import read_all, sample
from _trainsleuth_inside.places import Place

MOST_TENSORS = 500
MOST_TAKEN, MOST_HELD = 200, 1 << 16  # tensors, numbers of one
UNTIL = 100  # windows
Known = Tuple[str, Any, int, Any, Optional[Place]]  # name, weak reference, version, sample, where it was taken out of the graph


class Unchanged:
    def __init__(self, watch: Any) -> None:
        self._watch = watch
        self._known: Dict[int, List[Known]] = {}  # by model
        self._taken: List[Known] = []  # what `.data`, `.detach()` or numpy was taken of since the last backward

    def taken_out(self, how: str, tensor: Any, at: Optional[Place]) -> None:
        """The program has taken a tensor of the graph out of it, and may write to it."""
        torch = self._watch.torch
        if len(self._taken) >= MOST_TAKEN or not 1 < tensor.numel() <= MOST_HELD or self._watch.windows >= UNTIL or self._watch.late.busy():
            return
        if readable(tensor) and tensor.layout == torch.strided and not tensor.is_inference():
            with torch.no_grad():
                memory = torch.detach(tensor)  # held until backward: the program may let go of the tensor, while backward needs its memory
                self._taken.append((f"what {how} was taken of", lambda: memory, tensor._version, sample(memory).clone(), at))

    def remember(self, module: Any, args: Any, result: Any) -> None:
        """After a forward that records gradients."""
        if self._watch.windows >= UNTIL:
            self.forget()
            return
        torch = self._watch.torch
        given = [(f"argument {index}", value) for index, value in enumerate(args) if isinstance(value, torch.Tensor)]
        results = result if isinstance(result, (list, tuple)) else [result]
        given += [("the result", value) for value in results if isinstance(value, torch.Tensor)]
        named = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
        with torch.no_grad():
            self._known[id(module)] = [
                (name, weakref.ref(tensor), tensor._version, sample(tensor).clone(), None)
                for name, tensor in (*given, *named)[:MOST_TENSORS]
                if readable(tensor) and tensor.layout == torch.strided and tensor.numel() and not tensor.is_inference()
            ]

    def forget(self) -> None:
        self._known.clear()
        self.let_go()

    def let_go(self) -> None:
        self._taken = []

    def compare(self, loss: Any, at: Optional[Place]) -> None:
        """Before a backward: tensors whose version is as it was and whose numbers are not."""
        torch, watch = self._watch.torch, self._watch
        found: List[Tuple[str, Any, Optional[Place]]] = []
        changed: List[Any] = []
        with torch.no_grad():
            taken, self._taken = self._taken, []
            for rows in (*self._known.values(), taken):
                for name, reference, version, before, taken_at in rows:
                    tensor = reference()
                    if tensor is not None and tensor._version == version:
                        now = sample(tensor)
                        if now.shape == before.shape:
                            found.append((name, tensor, taken_at))
                            changed.append(((now != before) & ((now == now) | (before == before))).any().float())
        if not changed:
            return
        root, window = loss.grad_fn, watch.windows

        def arrived(values: List[float]) -> None:
            changes = [row for row, value in zip(found, values) if value]
            leaves = _leaves(root) if changes else set()
            changes = [row for row in changes if not (row[1].is_leaf and row[1].requires_grad) or id(row[1]) in leaves]
            if changes:
                taken_at = next((place for _, _, place in changes if place), None)
                names = [name for name, _, _ in changes[:8]]
                watch.facts.once("silent_change", "silent_change", names=names, at=at, window=window, taken_at=taken_at)

        read_all(watch, changed, arrived)


def _leaves(root: Any) -> Set[int]:
    """The weights that a graph leads to."""
    return {id(node.variable) for _, node in nodes([root]) if hasattr(node, "variable")}
