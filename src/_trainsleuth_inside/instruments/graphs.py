"""Reads the graph that a backward was refused for: which part an earlier backward has freed, and which lines made and used it."""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from _trainsleuth_inside import graph, places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.instruments.examination import leave
from _trainsleuth_inside.instruments.whereabouts import Surveyor
from _trainsleuth_inside.places import Place
from _trainsleuth_inside.standing import stands_for

MOST_REMEMBERED = 1_000_000
NO_NUMBER = (1 << 64) - 1  # of nodes that only collect gradients; they belong to no graph alone


class BackwardBook:
    """Knows which nodes each backward has passed, and the line of that backward."""

    def __init__(self, watch: Any, surveyor: Surveyor, probe: Probe) -> None:
        self._watch, self._torch, self._surveyor, self._probe = watch, watch.torch, surveyor, probe
        self._at: Optional[Place] = None
        self._passed: Dict[int, Tuple[Optional[Place], int]] = {}  # number of a node: line and number of the backward

    def place(self) -> Optional[Place]:
        """The line of the present backward."""
        return self._at

    def begin(self) -> None:
        autograd = self._torch.autograd
        autograd.backward = self._noting(autograd.backward, lambda args, kwargs: kwargs.get("inputs"))
        autograd.grad = self._noting(autograd.grad, lambda args, kwargs: args[0] if args else kwargs.get("inputs"))

    def _noting(self, original: Any, inputs_in: Any) -> Any:
        """The function, with a note of the nodes that it frees, and of those that it finds freed."""

        @stands_for(original)
        def walk(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            roots = began(tensors)
            try:
                result = original(tensors, *args, **kwargs)
            except RuntimeError as problem:
                if "second time" in str(problem) or "freed" in str(problem):
                    refused(roots)
                raise
            if not kwargs.get("retain_graph", kwargs.get("create_graph")):
                ended(roots, inputs_in(args, kwargs))
            return result

        @self._probe.guard
        def began(tensors: Any) -> List[Any]:
            self._at = places.of_frame(sys._getframe(3))
            self._surveyor.era += 1
            return [tensor.grad_fn for tensor in self._several(tensors) if tensor.grad_fn is not None]

        @self._probe.guard
        def ended(roots: List[Any], inputs: Any) -> None:
            if len(self._passed) < MOST_REMEMBERED:
                only = None if inputs is None else graph.leading_to(roots, self._several(inputs))
                for _, node in _nodes(roots):
                    if only is None or node in only:
                        self._passed.setdefault(_number(node), (self._at, self._surveyor.era))

        @self._probe.guard
        def refused(roots: List[Any]) -> None:
            self._tell(roots)

        return walk

    def _several(self, tensors: Any) -> List[Any]:
        return [tensors] if isinstance(tensors, self._torch.Tensor) else list(tensors)

    def _tell(self, roots: List[Any]) -> None:
        rows = []
        old = [(user, node) for user, node in _nodes(roots, self._passed) if _number(node) in self._passed]
        for user, node in old[:4]:
            made, used = self._surveyor.of_node(node), None if user is None else self._surveyor.of_node(user)
            first, era = self._passed[_number(node)]
            rows.append({
                "node": node.name(), "made_at": made.at if made else None, "made_above": made.above if made else [],
                "module": made.module if made else "", "used_at": used.at if used else None,
                "used_above": used.above if used else [], "freed_at": first, "backwards_ago": self._surveyor.era - era,
            })  # fmt: skip
        leave(self._watch, "freed graph", what="mutations", freed=rows, second=self._at, whole=bool(old) and old[0][0] is None)


def _nodes(roots: List[Any], stop: Any = ()) -> Iterator[Tuple[Any, Any]]:
    """The nodes of a graph from the loss on, each with the node that uses it; not beyond those that are to stop at."""
    found = graph.nodes(roots, enter=lambda node: _number(node) not in stop)
    return ((user, node) for user, node in found if _number(node) != NO_NUMBER)


def _number(node: Any) -> int:
    return int(node._sequence_nr())
