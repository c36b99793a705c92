"""The deep window: each module call of a forward, each place where the graph is cut, and a walk through the graph.

Only in programs that compile nothing, and only for the first windows and then as often as the budget allows.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.drawn_samples import DrawnSamples, can_reparameterise, that_score
from _trainsleuth_inside.graph import nodes, signed
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.masked_samples import MaskedSamples
from _trainsleuth_inside.samples import KINDS, Samples
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.tokens import is_tokens
from _trainsleuth_inside.weighted_sums import summed_elsewhere

MOST_CALLS = 600
MOST_CUTS = 200
MOST_WALKS, MOST_BEHIND = 12, 2_000  # from cuts backwards, and nodes of each
MOST_TOKENS, MOST_GIVEN = 8, 4
MOST_STEPS_FIRST = 16
MOST_LOGARITHMS = 8  # of a softmax, in one window
MOST_NODES = 50_000
FLAT = ("sign", "round", "floor", "ceil", "trunc")
CHAIN = 24


class Call:
    __slots__ = ("at", "drawn", "grad_on", "input", "module", "node", "order", "output", "parent", "pointer", "requires_grad", "root", "size")

    def __init__(self, order: int, parent: int, module: Any, root: Any) -> None:
        self.order = order
        self.parent = parent
        self.module = module
        self.root = root
        self.at: Optional[places.Place] = None
        self.node: Optional[int] = None  # the graph's node that made its output, by number: to hold the node would hold the graph
        self.pointer = 0
        self.size = 0
        self.requires_grad = False
        self.grad_on = True
        self.input: Optional[int] = None  # which of the samples
        self.output: Optional[int] = None
        self.drawn: List[Any] = []  # samples that may be in its input


class DeepWindow:
    def __init__(self, watch: Any, probe: Probe) -> None:
        self._watch = watch
        self._torch = watch.torch
        self._probe = probe
        self._calls: List[Call] = []
        self._stack: List[int] = []
        self._samples = Samples(watch.torch)
        self._cuts: List[List[Any]] = []
        self._walks = 0
        self._of_one: List[List[Any]] = []  # softmaxes over a single element
        self._log_softmaxes: List[List[Any]] = []
        self._not_last: List[List[Any]] = []  # softmaxes over another axis than the last
        self._flat: List[List[Any]] = []  # operations whose slope is zero
        self._drawn = DrawnSamples(watch.torch)
        self._masked = MaskedSamples(watch.torch)
        self._steps_first: List[Tuple[Call, List[int]]] = []  # modules that take the first axis for the steps, and what they were given
        self._pairs: List[List[Any]] = []  # where a column meets a row of the same length
        self._tokens: List[Any] = []  # what was looked up in embeddings
        self._patched: List[Tuple[Any, str, Any]] = []
        self._given: List[Any] = []  # what models were called with
        self._root: Any = None
        self._cost = 0.0
        self._by_hand: Tuple[int, Dict[int, int], Dict[int, Tuple[int, int]]] = (0, {}, {})  # backwards, versions of tensors and of gradients
        self._finish = probe.guard(self._finish_call)
        self._start = probe.guard(self._start_call)
        self._plainly = watch.plainly

    # -- one forward -----------------------------------------------------------------------------------------------

    def begin(self, root: Any) -> bool:
        if len(self._calls) >= MOST_CALLS or self._watch.late.busy():
            return False
        self._root = root
        if not self._patched:
            self._patch_cuts()
        return True

    def call(self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        record = self._start(module, args, kwargs)
        try:
            result = original(module, *args, **kwargs)
        finally:
            if record is not None and self._stack:
                self._stack.pop()
        if record is not None:
            self._finish(record, result)
        return result

    def _start_call(self, module: Any, args: Any, kwargs: Any) -> Optional[Call]:
        if len(self._calls) >= MOST_CALLS:
            return None
        began = time.perf_counter()
        record = Call(len(self._calls), self._stack[-1] if self._stack else -1, module, self._root)
        self._calls.append(record)
        self._stack.append(record.order)
        record.at = places.of_frame(sys._getframe(3))
        record.grad_on = self._torch.is_grad_enabled()
        with self._plainly():
            self._masked.look(module, args, kwargs, record.at)
        if record.parent < 0 or module._parameters:
            with self._plainly():
                given = _first_tensor(self._torch, args)
                if given is not None and record.parent < 0 and len(self._given) < MOST_GIVEN:
                    self._given.append(given.detach())
                record.drawn = self._drawn.given_to_a_layer(given)
                record.input = self._sampled(given)
                if given is not None and getattr(module, "batch_first", True) is False and len(self._steps_first) < MOST_STEPS_FIRST:
                    self._steps_first.append((record, list(given.shape)))
        self._cost += time.perf_counter() - began
        return record

    def _finish_call(self, record: Call, result: Any) -> None:
        began = time.perf_counter()
        tensor = _first_tensor(self._torch, result)
        if tensor is not None:
            with self._plainly():
                record.node = _number_of(tensor.grad_fn)
                record.requires_grad = tensor.requires_grad
                record.size = tensor.numel()
                record.pointer = _pointer(tensor)
                record.output = self._sampled(tensor)
                for drawn, held in record.drawn:
                    drawn.taken.append((record.node, held))
        self._cost += time.perf_counter() - began

    def _sampled(self, tensor: Any) -> Optional[int]:
        if tensor is None or not readable(tensor) or self._watch.late.busy():
            return None
        with self._torch.no_grad():
            return self._samples.take(tensor)

    # -- cuts ------------------------------------------------------------------------------------------------------

    def _patch_cuts(self) -> None:
        """While a deep window lasts: note who detaches, reads out or rebuilds a tensor that carries a graph, over which axis a softmax
        runs, where a column meets a row, and which tokens are looked up."""
        tensor = self._torch.Tensor
        for name in ("detach", "detach_", "item", "numpy", "tolist", "__array__"):
            original = getattr(tensor, name)
            self._shadow(tensor, name, stands_for(original)(self._noting(name, original)))
        data = self._torch._C.TensorBase.data if hasattr(self._torch._C, "TensorBase") else tensor.data
        note = self._probe.guard(self._note_cut)

        def get(this: Any) -> Any:
            note("data", this)
            return data.__get__(this)

        self._shadow(tensor, "data", property(get, lambda this, value: data.__set__(this, value)))
        enter = self._torch.no_grad.__enter__

        @stands_for(enter)
        def __enter__(this: Any) -> Any:
            note("no_grad", None)
            return enter(this)

        self._shadow(self._torch.no_grad, "__enter__", __enter__)
        for owner, name in ((tensor, "softmax"), (tensor, "log_softmax"), (self._torch, "softmax"), (self._torch, "log_softmax")):
            original = getattr(owner, name)
            self._shadow(owner, name, stands_for(original)(self._noting_axis(name, original)))
        for name in ("__sub__", "__rsub__", "sub", "__mul__", "__truediv__"):
            original = getattr(tensor, name)
            self._shadow(tensor, name, stands_for(original)(self._noting_pairs(original)))

        for name in FLAT:
            for owner in (tensor, self._torch):
                original = getattr(owner, name)
                self._shadow(owner, name, stands_for(original)(self._noting_flat(name, original)))
        for kind in can_reparameterise(self._torch):
            self._shadow(kind, "sample", self._noting_samples(kind.sample))
        for kind in that_score(self._torch):
            self._shadow(kind, "log_prob", self._noting_scores(kind.log_prob))
        embedding, note_tokens = self._torch.embedding, self._probe.guard(self._note_tokens)

        @stands_for(embedding)
        def looked_up(weight: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
            note_tokens(indices)
            return embedding(weight, indices, *args, **kwargs)

        self._shadow(self._torch, "embedding", looked_up)

    def _noting_flat(self, name: str, original: Any) -> Any:
        note = self._probe.guard(self._note_flat)

        def noted(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            note(name, result)
            return result

        return noted

    def _note_flat(self, name: str, result: Any) -> None:
        """An operation whose slope is zero nearly everywhere, on a tensor with a graph."""
        with self._plainly():
            if len(self._flat) < MOST_CUTS and readable(result) and result.grad_fn is not None:
                self._flat.append([name, places.of_frame(sys._getframe(3)), _number_of(result.grad_fn), result.numel()])

    def _noting_samples(self, original: Any) -> Any:
        note = self._probe.guard(self._note_sample)

        @stands_for(original)
        def sample(this: Any, *args: Any, **kwargs: Any) -> Any:
            drawn = original(this, *args, **kwargs)
            note(this, drawn)
            return drawn

        return sample

    def _note_sample(self, distribution: Any, sample: Any) -> None:
        with self._plainly():
            self._drawn.note(distribution, sample)

    def _noting_scores(self, original: Any) -> Any:
        note = self._probe.guard(self._note_score)

        @stands_for(original)
        def log_prob(this: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            note(value)
            return original(this, value, *args, **kwargs)

        return log_prob

    def _note_score(self, value: Any) -> None:
        with self._plainly():
            self._drawn.note_score(value)

    def _note_tokens(self, indices: Any) -> None:
        with self._plainly():
            if len(self._tokens) < MOST_TOKENS and readable(indices) and is_tokens(self._torch, indices):
                self._tokens.append(indices.detach())

    def was_given(self, target: Any) -> Optional[Any]:
        """Whether a model was called with these very numbers since the last backward, as an autoencoder is: a tensor, 1 or 0."""
        alike = [given for given in self._given if (given.numel(), given.dtype, given.device) == (target.numel(), target.dtype, target.device)]
        return None if not alike else self._torch.stack([(one.reshape(-1) == target.reshape(-1)).all().float() for one in alike]).amax()

    def tokens(self) -> List[Any]:
        """The batches of tokens that were looked up since the last backward."""
        return self._tokens

    def _noting_pairs(self, original: Any) -> Any:
        note = self._probe.guard(self._note_pairs)

        def noted(this: Any, *args: Any, **kwargs: Any) -> Any:
            if args:
                note(this, args[0])
            return original(this, *args, **kwargs)

        return noted

    def _note_pairs(self, one: Any, other: Any) -> None:
        """A column against a row of the same length: where all pairs are made, meant or not."""
        if not isinstance(other, self._torch.Tensor) or len(self._pairs) >= MOST_CUTS:
            return
        with self._plainly():
            if not (readable(one) and readable(other)):
                return
            shapes = [list(one.shape), list(other.shape)]
            column, row = sorted(shapes, key=len, reverse=True)
            if len(column) == 2 and len(row) == 1 and column == [row[0], 1] and row[0] > 1 and (one.requires_grad or other.requires_grad):
                self._pairs.append([places.of_frame(sys._getframe(3)), *shapes])

    def _noting_axis(self, name: str, original: Any) -> Any:
        note = self._probe.guard(self._note_axis)

        def noted(this: Any, *args: Any, **kwargs: Any) -> Any:
            note(name, this, args[0] if args else kwargs.get("dim"))
            return original(this, *args, **kwargs)

        return noted

    def _note_axis(self, name: str, tensor: Any, dim: Any) -> None:
        """A softmax over an axis of one element gives 1 whatever it is given, and passes no gradient on. What NLL gets comes from a log."""
        if not isinstance(dim, int) or len(self._of_one) >= MOST_CUTS:
            return
        with self._plainly():
            if not (readable(tensor) and tensor.dim() and tensor.requires_grad):
                return
            if tensor.shape[dim] == 1 and tensor.numel() > 1:
                self._of_one.append([places.of_frame(sys._getframe(3)), list(tensor.shape), dim])
            if name == "softmax" and dim % tensor.dim() != tensor.dim() - 1 and len(self._not_last) < MOST_CUTS:
                self._not_last.append([places.of_frame(sys._getframe(3)), list(tensor.shape), dim % tensor.dim()])
            if name == "log_softmax":
                self._log_softmaxes = [*self._log_softmaxes[1 - MOST_LOGARITHMS :], [places.of_frame(sys._getframe(3)), list(tensor.shape), dim]]

    def _noting(self, name: str, original: Any) -> Any:
        note = self._probe.guard(self._note_cut)

        def noted(this: Any, *args: Any, **kwargs: Any) -> Any:
            note(name, this)
            return original(this, *args, **kwargs)

        return noted

    def _shadow(self, owner: Any, name: str, value: Any) -> None:
        self._patched.append((owner, name, owner.__dict__.get(name)))
        setattr(owner, name, value)

    def _restore(self) -> None:
        while self._patched:
            owner, name, original = self._patched.pop()
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)

    def _note_cut(self, name: str, tensor: Any) -> None:
        if len(self._cuts) >= MOST_CUTS:
            return
        with self._plainly():
            if tensor is not None and not (tensor.requires_grad and tensor.grad_fn is not None):
                return
        if places.kind_of(sys._getframe(3).f_code.co_filename) == places.OURS:
            return
        at = _decorated(sys._getframe(3)) or places.of_frame(sys._getframe(3))
        if name in ("data", "detach"):
            with self._plainly():
                self._watch.unchanged.taken_out(f".{name}", tensor, at)
        if name == "no_grad":
            with self._plainly():
                tensor = self._given_to_decorated(sys._getframe(3))
        source, size, node = -1, 0, None
        if tensor is not None:
            with self._plainly():
                size, pointer, node = tensor.numel(), _pointer(tensor), _number_of(tensor.grad_fn)
            for call in reversed(self._calls):
                if call.pointer and call.pointer == pointer:
                    source = call.order
                    break
        self._cuts.append([name, at, len(self._calls), source, size, node, self._calls_behind(tensor)])

    def _calls_behind(self, tensor: Any) -> Optional[List[int]]:
        """The calls whose output this tensor was computed from; None where that is not known, for the graph is large or there is none."""
        if tensor is None or self._walks >= MOST_WALKS:
            return None
        self._walks += 1
        began = time.perf_counter()
        with self._plainly():
            behind = {node._sequence_nr() for _, node in nodes([tensor.grad_fn], MOST_BEHIND)}
        self._cost += time.perf_counter() - began
        return None if len(behind) >= MOST_BEHIND else [call.order for call in self._calls if call.node in behind]

    def _given_to_decorated(self, frame: Any) -> Any:
        """The first tensor with a graph that a function under `@torch.no_grad()` is given."""
        if frame.f_code.co_name != "decorate_context":
            return None
        given = [*frame.f_locals.get("args", ()), *frame.f_locals.get("kwargs", {}).values()]
        found = (_first_tensor(self._torch, value) for value in given)
        return next((tensor for tensor in found if tensor is not None and tensor.grad_fn is not None), None)

    # -- the walk --------------------------------------------------------------------------------------------------

    def before_backward(self, loss: Any, at: Optional[places.Place]) -> None:
        """Walk the graph of the loss, and write what was seen since the last backward."""
        began = time.perf_counter()
        self._restore()
        seen, leaves, chain = self._walk(loss.grad_fn)
        reachable = {node._sequence_nr() for node in seen}
        with self._torch.no_grad():
            sampled = self._samples.numbers()
        rows = []
        numbers: List[Any] = []
        for call in self._calls:
            rows.append([call.order, call.parent, self._path(call), type(call.module).__name__, call.at, call.grad_on,
                         call.requires_grad, call.node is not None and call.node in reachable])  # fmt: skip
            for which in (call.input, call.output):
                numbers.append(None if which is None else sampled[which])
        models = [record.name if (record := self._watch.models.get(id(call.root))) else None for call in self._calls]
        watch = self._watch
        if watch.precision is not None:
            made_by = {call.node: row[2] or row[3] for call, row in zip(self._calls, rows) if call.node is not None}
            watch.precision.graph_is_known(seen, made_by)
        cuts = [[*cut[:5], cut[5] is not None and cut[5] in reachable, cut[6]] for cut in self._cuts]
        of_one, pairs, log_softmaxes = self._of_one, self._pairs, self._log_softmaxes
        elsewhere = summed_elsewhere(seen) if self._not_last else []
        not_summed = [row for row in self._not_last if (row[1], row[2]) in elsewhere]
        drawn, scored = self._drawn.rows(reachable)
        flat = [[name, at_line, size] for name, at_line, node, size in self._flat if node in reachable]
        steps_first = [
            [self._path(call), type(call.module).__name__, shape, call.at] for call, shape in self._steps_first if call.node in reachable
        ]
        masked = self._masked
        self._forget()
        reached = [watch.parameters.number(leaf) for leaf in leaves]
        window = watch.windows
        if not watch.optimizers:
            self._look_at_hand_made_steps(leaves, at)

        def write(values: List[Any]) -> None:
            for index, row in enumerate(rows):
                for found in values[2 * index : 2 * index + 2]:
                    row.extend(found or [None] * KINDS)
                row.append(models[index])
            watch.facts.write(
                "deep", window=window, at=at, calls=rows, cuts=cuts, chain=chain, reached=reached[:4000], nodes=len(reachable),
                softmax_of_one=of_one, log_softmaxes=log_softmaxes, pairs=pairs, not_summed=not_summed,
                drawn=drawn, scored=scored, steps_first=steps_first, flat=flat,
            )  # fmt: skip

        from _trainsleuth_inside.movement import read_all

        read_all(watch, numbers, write)
        if masked.rows:
            read_all(watch, masked.numbers, lambda values: self._tell_masked(masked.rows, values))
        cost, self._cost = self._cost + time.perf_counter() - began, 0.0
        watch.depth.paid(cost, watch.windows + 1, watch.period.seconds)

    def _tell_masked(self, rows: List[Any], values: List[Any]) -> None:
        for (kind, at), found in zip(rows, values):
            self._watch.facts.write("masked", kind=kind, at=at, values=found)

    def _look_at_hand_made_steps(self, leaves: List[Any], at: Optional[places.Place]) -> None:
        """Without any optimizer: how many tensors the program has changed since the backward before, and how many of these still hold
        the gradient which that backward left, untouched."""
        backwards, versions, gradients = self._by_hand
        if self._watch.backwards == backwards + 1:
            changed = [leaf for leaf in leaves if versions.get(id(leaf), leaf._version) != leaf._version]
            stale = [leaf for leaf in changed if leaf.grad is not None and gradients.get(id(leaf)) == (id(leaf.grad), leaf.grad._version)]
            self._watch.facts.write("by_hand", at=at, leaves=len(leaves), changed=len(changed), stale=len(stale))
        self._by_hand = (self._watch.backwards, {id(leaf): leaf._version for leaf in leaves}, {})
        self._when_it_has_ended(leaves)

    def _when_it_has_ended(self, leaves: List[Any]) -> None:
        reactions = self._watch.when_backward_ended

        def ended(*_: Any) -> None:
            reactions.remove(once)
            self._by_hand[2].update({id(leaf): (id(leaf.grad), leaf.grad._version) for leaf in leaves if leaf.grad is not None})

        once = self._probe.guard(ended)
        reactions.append(once)

    def also_cost(self, seconds: float) -> None:
        """Others looked at what we showed them; it is booked with the next look."""
        self._cost += seconds

    def drop(self) -> None:
        """The window ended without a backward that we saw."""
        self._restore()
        self._forget()
        self._watch.unchanged.let_go()

    def _forget(self) -> None:
        self._calls, self._cuts, self._stack, self._of_one, self._pairs, self._tokens, self._given = [], [], [], [], [], [], []
        self._samples, self._log_softmaxes, self._not_last, self._flat = Samples(self._torch), [], [], []
        self._drawn, self._steps_first, self._walks = DrawnSamples(self._torch), [], 0
        self._masked = MaskedSamples(self._torch)

    def _walk(self, root: Any) -> Tuple[List[Any], List[Any], List[List[Any]]]:
        seen: Dict[int, Any] = {}
        leaves: List[Any] = []
        chain: List[List[Any]] = []
        queue: List[Tuple[Any, int]] = [(root, -1)] if root is not None else []
        for node, user in queue:
            if id(node) in seen or len(seen) >= MOST_NODES:
                continue
            seen[id(node)] = node
            variable = getattr(node, "variable", None)
            if variable is not None:
                leaves.append(variable)
            if len(chain) < CHAIN:
                chain.append([node.name().split("::")[-1], _shape(node), user, _dim(node)])
                user = len(chain) - 1
            else:
                user = -1
            for following, _ in node.next_functions:
                if following is not None:
                    queue.append((following, user))
        return list(seen.values()), leaves, chain

    def _path(self, call: Call) -> str:
        record = self._watch.models.get(id(call.root))
        if record is None:
            for path, child in call.root.named_modules():
                if child is call.module:
                    return str(path)
            return "?"
        return str(record.paths.get(id(call.module), "?"))


def _number_of(node: Any) -> Optional[int]:
    return None if node is None else node._sequence_nr()


def _shape(node: Any) -> Optional[List[int]]:
    try:
        metadata = node._input_metadata
        return [int(size) for size in metadata[0].shape] if metadata else None
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None


def _dim(node: Any) -> Optional[int]:
    dim = getattr(node, "_saved_dim", None)
    if not isinstance(dim, int):
        return None
    return signed(dim)


def _pointer(tensor: Any) -> int:
    try:
        return int(tensor.data_ptr())
    except RuntimeError:
        return 0


def _first_tensor(torch: Any, value: Any, level: int = 0) -> Any:
    """The first tensor in a model's arguments or result, however it is wrapped."""
    if isinstance(value, torch.Tensor):
        return value
    if level > 3:
        return None
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value[:8]:
            found = _first_tensor(torch, item, level + 1)
            if found is not None:
                return found
    return None


def _decorated(frame: Any) -> Optional[places.Place]:
    """Where `@torch.no_grad()` stands above a function of the user's, if that is what entered it."""
    function = frame.f_locals.get("func") if frame.f_code.co_name == "decorate_context" else None
    code = getattr(function, "__code__", None)
    if code is None or places.kind_of(code.co_filename) != places.USER:
        return None
    return places.beginning_of(code)
