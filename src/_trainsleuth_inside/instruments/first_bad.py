"""Finds the first operation that made NaN or Inf from clean inputs, and follows it to where it does harm.

An origin is an operation that gives NaN where no input has one, or Inf where all inputs are finite. Each bad tensor knows the
operation that made it and the bad tensor it came from, so that what is blamed is what really reached the loss or the
gradients: a transient that a mask absorbed leads nowhere. A constant (a mask of -inf) is bad on purpose and no origin.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

from _trainsleuth_inside.instruments.numbers import (
    CLEAN,
    INF,
    NAN,
    bad_rows,
    describe,
    holds_numbers,
    state,
    storage_of,
    tensors_in,
)
from _trainsleuth_inside.instruments.whereabouts import Surveyor, Whereabouts, dispatching

PASSED_OVER = (
    "aten.empty", "aten.new_empty", "aten.detach", "aten.alias", "aten.record_stream", "aten.is_", "aten._local_scalar", "aten.set_",
)  # fmt: skip
CONSTANTS = ("aten.full", "aten.masked_fill", "aten.fill", "aten.scalar_tensor", "aten.lift_fresh", "aten.zeros", "aten.ones")
OVERWRITES = (
    "aten.copy_.", "aten.fill_.", "aten.zero_.", "aten.normal_.", "aten.uniform_.", "aten.random_.", "aten.bernoulli_.", "aten.exponential_.",
)  # fmt: skip
MOST_CHAIN = 40
MOST_INPUTS = 4


class Link:
    """One operation on the way of a bad number."""

    __slots__ = ("about", "constant", "op", "parent", "state", "where")

    def __init__(self, op: str, bad: str, where: Whereabouts, parent: Optional["Link"], about: Any = None) -> None:
        self.op, self.state, self.where, self.parent = op, bad, where, parent
        self.about = about  # of an origin
        self.constant = False


class FirstBad:
    """The bookkeeping; `mode` is the dispatch mode that feeds it."""

    def __init__(self, watch: Any) -> None:
        self.watch = watch
        self.torch = watch.torch
        self.surveyor = Surveyor(watch)
        self.paused = False
        self.operations = 0
        self._links: Dict[int, Link] = {}
        self._kept: List[Any] = []  # bad tensors live on, or another would get their storage
        self._pid = os.getpid()
        self.mode = dispatching(self.run)

    # -- while the program runs ------------------------------------------------------------------------------------

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        name = str(function)
        if self.paused or self._pid != os.getpid() or name.startswith(PASSED_OVER):
            return function(*args, **kwargs)
        self.operations += 1
        inputs = list(tensors_in(self.torch, (args, kwargs)))
        if name.startswith(OVERWRITES):  # what lay there before, perhaps in memory that nobody had written to, is no input
            inputs = inputs[1:]
        where = self.surveyor.here()
        writes = function._schema.is_mutable
        before = [state(self.torch, tensor) for tensor in inputs] if writes else None
        copies = [tensor.detach().clone() for tensor in inputs[:MOST_INPUTS]] if writes else inputs[:MOST_INPUTS]
        result = function(*args, **kwargs)
        for output in tensors_in(self.torch, result):
            bad = state(self.torch, output)
            if bad == CLEAN:
                continue
            if before is None:
                before = [state(self.torch, tensor) for tensor in inputs]
            self._note(name, function, args, kwargs, inputs, before, output, bad, where, copies)
        return result

    def _note(
        self, name: str, function: Any, args: Any, kwargs: Any, inputs: List[Any], before: List[str], output: Any, bad: str,
        where: Whereabouts, copies: List[Any],
    ) -> None:  # fmt: skip
        sources = [(tensor, was) for tensor, was in zip(inputs, before) if was != CLEAN]
        links = [self._links.get(storage_of(tensor)) or self._from_outside(tensor, was, where) for tensor, was in sources]
        parent = next((link for link in links if link is not None and not link.constant), links[0] if links else None)
        link = Link(name, bad, where, parent)
        is_new = (bad == NAN and NAN not in before) or (bad == INF and not any(before))
        if is_new:
            link.constant = _constant(name, args, kwargs)
            link.about = {
                "count": int((~self.torch.isfinite(output)).sum()), "numel": output.numel(), "shape": list(output.shape),
                "dtype": str(output.dtype).replace("torch.", ""), "inputs": [describe(self.torch, tensor) for tensor in copies],
                "scalars": _scalars(args, kwargs), "fits_in_float": self._fits_in_float(function, args, kwargs, output),
                "zero_gradient": self._gradient_was_zero(where, copies, before, output, parent),
                "row_of_minus_inf": _row_of_minus_inf(self.torch, name, copies),
            }  # fmt: skip
        self._links[storage_of(output)] = link
        self._kept.append(output)

    def _from_outside(self, tensor: Any, bad: str, where: Whereabouts) -> Link:
        """A bad tensor that no operation under our eyes has made: data, weights, or something older."""
        link = Link("given", bad, where, None, {
            "count": int((~self.torch.isfinite(tensor.detach())).sum()), "numel": tensor.numel(), "shape": list(tensor.shape),
            "dtype": str(tensor.dtype).replace("torch.", ""), "inputs": [], "role": self._role(tensor),
            "rows": bad_rows(self.torch, tensor),
        })  # fmt: skip
        self._links[storage_of(tensor)] = link
        self._kept.append(tensor)
        return link

    def _role(self, tensor: Any) -> Dict[str, Any]:
        storage = storage_of(tensor)
        for record in list(self.watch.models.values()):
            root = record.module()
            for kind, named in (("parameter", "named_parameters"), ("buffer", "named_buffers")):
                for name, known in getattr(root, named)() if root is not None else ():
                    if storage_of(known) == storage:
                        return {"kind": kind, "name": name}
                    if kind == "parameter" and known.grad is not None and storage_of(known.grad) == storage:
                        return {"kind": "gradient", "name": name}
        if any(storage_of(known) == storage for known in self.watch.owned_parameters()):
            return {"kind": "parameter", "name": ""}
        return {"kind": "data"}

    def _fits_in_float(self, function: Any, args: Any, kwargs: Any, output: Any) -> Optional[bool]:
        """For 16 bits: whether the same operation in 32 bits would have been finite."""
        torch = self.torch
        if output.dtype not in (torch.float16, torch.bfloat16) or function._schema.is_mutable:
            return None

        def wide(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.detach().float() if value.is_floating_point() else value.detach()
            if value in (torch.float16, torch.bfloat16):
                return torch.float32
            return type(value)(wide(item) for item in value) if isinstance(value, (list, tuple)) else value

        try:
            again = function(*wide(tuple(args)), **{key: wide(value) for key, value in kwargs.items()})
        except (RuntimeError, TypeError, NotImplementedError):
            return None
        return all(state(torch, tensor) == CLEAN for tensor in tensors_in(torch, again))

    def _gradient_was_zero(
        self, where: Whereabouts, inputs: List[Any], before: List[str], output: Any, parent: Optional[Link]
    ) -> Optional[bool]:
        """In backward: whether nothing flowed back where NaN arose, so that zero times an infinite slope made it.

        An infinity must come from this very node, which computes the slope; one from an earlier node is the gradient itself.
        """
        if where.phase != "backward":
            return None
        if INF in before and (parent is None or parent.where.number != where.number):
            return False
        at = self.torch.isnan(output)
        for tensor in inputs:
            if holds_numbers(self.torch, tensor) and tensor.shape == output.shape and bool(at.any()) and bool((tensor[at] == 0).all()):
                return True
        return False

    # -- afterwards ------------------------------------------------------------------------------------------------

    def batch_arrived(self, leaves: List[Tuple[str, Any]], about: Dict[str, Any], samples: Any) -> None:
        """Look at a batch before the program does: a bad number in it has come with the data, whoever made it there."""
        for field, tensor in leaves:
            bad = state(self.torch, tensor)
            if bad != CLEAN:
                rows = bad_rows(self.torch, tensor)
                named = [samples[row] for row in rows if samples is not None and row < len(samples)]
                made = self.blame(tensor)
                link = self._from_outside(tensor, bad, self.surveyor.here())
                link.about["role"] = {
                    "kind": "data",
                    **about,
                    "field": field,
                    "rows": rows,
                    "indices": named,
                    "made": _brief(made),
                }

    def newest(self) -> Any:
        """The single bad number that was computed last."""
        return next((tensor for tensor in reversed(self._kept) if tensor.numel() == 1), None)

    def blame(self, tensor: Any) -> Optional[Dict[str, Any]]:
        """The origin of what is bad in this tensor, with the chain of operations that led from there to here."""
        if state(self.torch, tensor) == CLEAN:
            return None
        link = self._links.get(storage_of(tensor))
        chain: List[Link] = []
        while link is not None:
            chain.append(link)
            link = link.parent
        origins = [one for one in chain if one.about is not None and not one.constant]
        if not origins:
            return None
        origin = origins[-1]
        onward = chain[: chain.index(origin)][::-1]
        came_back = any((one.about or {}).get("zero_gradient") for one in origins)
        return {**_told(origin), "zero_gradient": came_back, "chain": [_step(one) for one in _shortened(onward)]}


def _told(origin: Link) -> Dict[str, Any]:
    where = origin.where
    return {"op": origin.op, "bad": origin.state, "phase": where.phase, "node": where.node, "module": where.module,
            "module_kind": where.module_kind, "at": where.at, "above": where.above, "number": where.number, **(origin.about or {})}  # fmt: skip


def _brief(origin: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    return None if origin is None else {key: origin[key] for key in ("op", "bad", "at", "inputs") if key in origin}


def _step(link: Link) -> List[Any]:
    return [link.op, link.where.module, link.where.at, link.state, link.where.phase]


def _shortened(links: List[Link]) -> List[Link]:
    """One link for each line of the program that the bad numbers passed."""
    kept: List[Link] = []
    for link in links:
        if not kept or (link.where.at, link.where.phase) != (kept[-1].where.at, kept[-1].where.phase):
            kept.append(link)
    return kept if len(kept) <= MOST_CHAIN else kept[: MOST_CHAIN // 2] + kept[-MOST_CHAIN // 2 :]


def _constant(name: str, args: Any, kwargs: Any) -> bool:
    if name.startswith(CONSTANTS):
        return True
    given = [*args, *kwargs.values()]
    return any(isinstance(value, float) and value in (float("inf"), float("-inf")) for value in given)


def _scalars(args: Any, kwargs: Any) -> List[Any]:
    return [value for value in (*args, *kwargs.values()) if isinstance(value, (int, float, bool))][:6]


def _row_of_minus_inf(torch: Any, name: str, inputs: List[Any]) -> Optional[bool]:
    """For a softmax: whether a whole row of its input is -inf, so that there is nothing to share the probability among."""
    if "softmax" not in name or not inputs or not holds_numbers(torch, inputs[0]) or inputs[0].dim() == 0:
        return None
    empty = torch.isneginf(inputs[0].detach().float())
    return any(bool(empty.all(dim).any()) for dim in range(empty.dim()))
