"""The random samples of a deep window: which distributions draw them without gradients, and which layer computes on with them.

A layer does so if its input holds the sample's own numbers, whatever they were joined with on the way. What is only shown, or handed to an
environment, or weighed by its `log_prob`, needs no gradient.
"""

from __future__ import annotations

import sys
from typing import Any, Collection, Iterator, List, Optional, Tuple

from _trainsleuth_inside import places

MOST_DRAWN = 64
MOST_LOOKED_THROUGH = 1_000_000  # numbers of an input
PROBES = 8  # numbers of a sample by which it is known again


def can_reparameterise(torch: Any) -> Iterator[Any]:
    """The classes of torch that have a `sample` of their own, and an `rsample`; most inherit both from the first of them."""
    for kind in vars(torch.distributions).values():
        if isinstance(kind, type) and "sample" in vars(kind) and (getattr(kind, "has_rsample", False) or kind is torch.distributions.Distribution):
            yield kind


def that_score(torch: Any) -> Iterator[Any]:
    for kind in vars(torch.distributions).values():
        if isinstance(kind, type) and "log_prob" in vars(kind):
            yield kind


class Drawn:
    __slots__ = ("at", "kind", "probes", "taken")

    def __init__(self, at: Optional[places.Place], kind: str, probes: Any) -> None:
        self.at, self.kind, self.probes = at, kind, probes
        self.taken: List[Tuple[Optional[int], Any]] = []  # the node that a layer made, and whether it held these numbers


class DrawnSamples:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._drawn: List[Drawn] = []
        self._scored: List[Any] = []  # whether somebody asked for the log_prob of one of them

    def note(self, distribution: Any, sample: Any) -> None:
        torch = self._torch
        if not torch.is_grad_enabled() or not getattr(distribution, "has_rsample", False) or len(self._drawn) >= MOST_DRAWN:
            return
        if not isinstance(sample, torch.Tensor) or not sample.numel() or not _learnt(torch, distribution):
            return
        at = places.of_frame(sys._getframe(2))
        if self._drawn and self._drawn[-1].at == at and not self._drawn[-1].taken:
            self._drawn.pop()  # what an outer distribution draws by an inner one
        self._drawn.append(Drawn(at, type(distribution).__name__, sample.detach().reshape(-1)[:PROBES].clone()))

    def note_score(self, value: Any) -> None:
        if isinstance(value, self._torch.Tensor):
            self._scored += [held for _, held in self._held_by(value)]

    def given_to_a_layer(self, given: Any) -> List[Tuple[Drawn, Any]]:
        """Which samples may be in this input; whether they are is known on the tensor's device."""
        if given is None or given.requires_grad or not self._torch.is_grad_enabled():
            return []
        return self._held_by(given)

    def _held_by(self, tensor: Any) -> List[Tuple[Drawn, Any]]:
        if not self._drawn or tensor.numel() > MOST_LOOKED_THROUGH:
            return []
        flat = tensor.detach().reshape(1, -1)
        return [
            (drawn, (flat == drawn.probes.reshape(-1, 1)).any(1).all())
            for drawn in self._drawn
            if (tensor.dtype, tensor.device) == (drawn.probes.dtype, drawn.probes.device)
        ]

    def rows(self, nodes: Collection[int]) -> Tuple[List[List[Any]], bool]:
        """Line and kind of each, and whether a layer whose output the loss hangs on was given it; whether one was scored."""
        rows = [
            [drawn.at, drawn.kind, any(node in nodes and bool(held) for node, held in drawn.taken if node is not None)] for drawn in self._drawn
        ]
        return rows, any(row[2] for row in rows) and any(bool(held) for held in self._scored)


def _learnt(torch: Any, distribution: Any) -> bool:
    inner = getattr(distribution, "base_dist", distribution)
    return any(isinstance(value, torch.Tensor) and value.grad_fn is not None for value in vars(inner).values())
