"""Gradients that flow in 16 bit: how many of them vanish, module by module, in a backward that is looked at.

float16 ends at 2**-24 below; what is smaller than half of that becomes zero. A zero by itself says nothing, a dead ReLU gives
zeros too. Two signs are honest: where a gradient of 32 bit is cast to 16, what will be lost can be added up; elsewhere values
that vanish leave their neighbours behind, crowded on the lowest steps that float16 has.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Tuple

from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.movement import read_all, sample

LOST = 2.0**-25  # rounds to zero
LOWEST = 2.0**-22  # the four lowest steps
MOST_OF_A_KIND = 16
LEAST_NUMBERS = 16
WEIGHT, OUTPUT, CAST = "weight", "output", "cast"
Chosen = Tuple[Any, str, Any]  # a node of the graph, what its gradient belongs to, its name or number


class HalfGradients:
    def __init__(self, watch: Any, probe: Probe) -> None:
        self._watch = watch
        self._probe = probe
        self._half, self._brain, self._full = watch.torch.float16, watch.torch.bfloat16, watch.torch.float32
        self._handles: List[Any] = []
        self._rows: List[List[Any]] = []
        self._counts: List[Any] = []
        self._nodes: Dict[str, int] = {}
        self.autocast: Any = None  # the type of an autocast that is on around the backward
        self._own: List[str] = []  # the user's own autograd functions in the graph
        self._roundness: List[Any] = []  # how round their gradients are, going in and coming out
        self._cost = 0.0

    def begin(self, nodes: List[Any], made_by: Dict[int, str]) -> None:
        """The graph of a loss is known, its backward comes next. `made_by` names the module by the number of its output's node."""
        began = time.perf_counter()
        self._forget()
        dtypes = {id(node): _dtype(node) for node in nodes}
        known = list(dtypes.values())
        self._nodes = {
            "float16": known.count(self._half),
            "bfloat16": known.count(self._brain),
            "float32": known.count(self._full),
        }
        if self.autocast is not None:
            for node, name in [(node, name) for node in nodes if (name := _own_function(node))][:MOST_OF_A_KIND]:
                self._handles.append(node.register_hook(self._probe.guard(self._weighing(name))))
        if self._nodes["float16"]:
            for node, kind, name in self._choose(nodes, dtypes, made_by):
                self._handles.append(node.register_prehook(self._probe.guard(self._counting(kind, name))))
        self._cost = time.perf_counter() - began

    def _choose(self, nodes: List[Any], dtypes: Dict[int, Any], made_by: Dict[int, str]) -> List[Chosen]:
        weights: List[Chosen] = []
        outputs: List[Chosen] = []
        casts: List[Chosen] = []
        for node in nodes:
            following = [other for other, _ in node.next_functions if other is not None]
            if dtypes[id(node)] is self._half:
                leaf = node if not following else following[0] if len(following) == 1 else None
                variable = getattr(leaf, "variable", None)
                if variable is not None and variable.dim() >= 2:
                    weights.append((node, WEIGHT, self._watch.parameters.number(variable)))
                elif node._sequence_nr() in made_by:
                    outputs.append((node, OUTPUT, made_by[node._sequence_nr()]))
            elif dtypes[id(node)] is self._full:
                lower = [other for other in following if dtypes.get(id(other)) is self._half]
                if lower:
                    casts.append((node, CAST, made_by.get(lower[0]._sequence_nr())))
        return [*_spread(weights), *_spread(outputs), *_spread(casts)]

    def _counting(self, kind: str, name: Any) -> Any:
        def count(gradients: Any) -> None:
            gradient = gradients[0]
            if gradient is None or len(self._rows) >= 4 * MOST_OF_A_KIND:
                return
            began = time.perf_counter()
            with self._watch.plainly(), self._watch.torch.no_grad():
                sizes = sample(gradient).abs().float()
                low = sizes.where(sizes <= (LOST if kind == CAST else LOWEST), sizes.new_zeros(()))
                self._counts += [(sizes == 0).float().mean(), sizes.sum(), low.sum()]
            self._rows.append([kind, name, int(sizes.numel())])
            self._cost += time.perf_counter() - began

        return count

    def _weighing(self, name: str) -> Any:
        """Under autocast the backward of the user's own function may compute in 16 bit: what comes out is then round, though of 32 bit."""

        def weigh(after: Any, before: Any) -> None:
            pairs = [next((g for g in some if g is not None and g.dtype is self._full), None) for some in (before, after)]
            if all(gradient is not None and gradient.numel() >= LEAST_NUMBERS for gradient in pairs):
                self._own.append(name)
                with self._watch.plainly(), self._watch.torch.no_grad():
                    for gradient in pairs:
                        values = sample(gradient)
                        self._roundness.append((values.to(self.autocast).float() == values).float().mean())

        return weigh

    def write_autocast(self, at: Any) -> None:
        """Backward ran under autocast."""
        watch, dtype, own = self._watch, str(self.autocast).replace("torch.", ""), self._own

        def write(values: List[Any]) -> None:
            rounded = {name for index, name in enumerate(own) if values[2 * index] < 0.5 and values[2 * index + 1] > 0.99}
            watch.facts.once(("autocast", at, bool(rounded)), "autocast_backward", at=at, dtype=dtype, rounded=sorted(rounded))

        read_all(watch, self._roundness, write)

    def end(self, at: Any, scaled: bool) -> None:
        """The backward is over: take the hooks away and write what they counted."""
        if not self._nodes:
            return
        watch, rows, nodes, window = self._watch, self._rows, self._nodes, self._watch.windows + 1
        counts, cost = self._counts, self._cost
        self._forget()
        watch.deep_window.also_cost(cost)
        if not (nodes["float16"] or nodes["bfloat16"]):
            return

        def write(values: List[Any]) -> None:
            for index, row in enumerate(rows):
                row += values[3 * index : 3 * index + 3]
            watch.facts.write("half_gradients", window=window, at=at, scaled=scaled, nodes=nodes, rows=rows)

        read_all(watch, counts, write)

    def _forget(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles, self._rows, self._counts, self._nodes, self._own, self._roundness = [], [], [], {}, [], []


def _dtype(node: Any) -> Any:
    """The type of the gradient that a node of the graph receives."""
    try:
        metadata = node._input_metadata
        return metadata[0].dtype if metadata else None
    except (AttributeError, RuntimeError, TypeError):
        return None


def _own_function(node: Any) -> Optional[str]:
    """The user's own autograd function, unless `custom_fwd` and `custom_bwd` settle the precision of its backward."""
    made_from = getattr(type(node), "_forward_cls", None)
    if made_from is None or made_from.__module__.startswith("torch.") or hasattr(node, "_fwd_used_autocast"):
        return None
    return str(made_from.__name__)


def _spread(chosen: List[Chosen]) -> List[Chosen]:
    return chosen[:: -(-len(chosen) // MOST_OF_A_KIND)] if chosen else []
