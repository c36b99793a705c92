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
MOST_TAKEN, MOST_HELD = 200, 1 << 22  # tensors, and numbers of all of them
UNTIL = 100  # windows
Known = Tuple[str, Any, int, Any, Optional[Place], Set[int]]  # name, reference, version, sample; where it was taken out of the graph, and its nodes


class Unchanged:
    def __init__(self, watch: Any) -> None:
        self._watch = watch
        self._known: Dict[int, List[Known]] = {}  # by model
        self._held = 0
        self._taken: List[Known] = []  # what `.data`, `.detach()` or numpy was taken of since the last backward

    def taken_out(self, how: str, tensor: Any, at: Optional[Place]) -> None:
        """The program has taken a tensor of the graph out of it, and may write to it."""
        torch = self._watch.torch
        if len(self._taken) >= MOST_TAKEN or not 1 < tensor.numel() <= MOST_HELD - self._held:
            return
        if self._watch.windows >= UNTIL or self._watch.late.busy():
            return
        if readable(tensor) and tensor.layout == torch.strided and not tensor.is_inference():
            with torch.no_grad():
                memory = torch.detach(tensor)  # held until backward: the program may let go of the tensor, while backward needs its memory
                self._held += tensor.numel()
                self._taken.append((f"what {how} was taken of", lambda: memory, tensor._version, sample(memory).clone(), at, _made_by(tensor)))

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
                (name, weakref.ref(tensor), tensor._version, sample(tensor).clone(), None, set())
                for name, tensor in (*given, *named)[:MOST_TENSORS]
                if readable(tensor) and tensor.layout == torch.strided and tensor.numel() and not tensor.is_inference()
            ]

    def forget(self) -> None:
        self._known.clear()
        self.let_go()

    def let_go(self) -> None:
        self._taken, self._held = [], 0

    def compare(self, loss: Any, at: Optional[Place]) -> None:
        """Before a backward: tensors whose version is as it was and whose numbers are not."""
        torch, watch = self._watch.torch, self._watch
        found: List[Tuple[str, Any, Optional[Place], Set[int]]] = []
        changed: List[Any] = []
        with torch.no_grad():
            taken = self._taken
            self.let_go()
            for rows in (*self._known.values(), taken):
                for name, reference, version, before, taken_at, made_by in rows:
                    tensor = reference()
                    if tensor is not None and tensor._version == version:
                        now = sample(tensor)
                        if now.shape == before.shape:
                            found.append((name, tensor, taken_at, made_by))
                            changed.append(((now != before) & ((now == now) | (before == before))).any().float())
        if not changed:
            return
        root, window = loss.grad_fn, watch.windows

        def arrived(values: List[float]) -> None:
            changes = [row for row, value in zip(found, values) if value]
            reached = [node for _, node in nodes([root])] if changes else []
            leaves = {id(node.variable) for node in reached if hasattr(node, "variable")}
            numbers = {node._sequence_nr() for node in reached}
            changes = [row for row in changes if not (row[1].is_leaf and row[1].requires_grad) or id(row[1]) in leaves]
            changes = [row for row in changes if not row[3] or row[3] & numbers]  # a copy of its own, say, is nothing that backward needs
            if changes:
                taken_at = next((row[2] for row in changes if row[2]), None)
                names = [row[0] for row in changes[:8]]
                watch.facts.once("silent_change", "silent_change", names=names, at=at, window=window, taken_at=taken_at)

        read_all(watch, changed, arrived)


def _made_by(tensor: Any) -> Set[int]:
    """The nodes of the graph that made a tensor, or the one that it is a view of, by number."""
    made = [tensor.grad_fn, tensor._base.grad_fn if tensor._is_view() else None]
    return {node._sequence_nr() for node in made if node is not None}
