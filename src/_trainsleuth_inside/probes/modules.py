"""Records the models that are called, in which mode, by which line; what they are made of; who set mode and weights."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.deep import DeepWindow
from _trainsleuth_inside.dropping import Dropping
from _trainsleuth_inside.end_marks import EndMarks
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.heartbeat import FORWARD, OUTSIDE
from _trainsleuth_inside.models import ModelRecord
from _trainsleuth_inside.movement import plain, read_all
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.state_names import compare
from _trainsleuth_inside.watch import Watch

MOST_MODELS = 64
MOST_NAMES = 40
MOST_NODES = 64  # of the graph behind a tensor that hangs on a module
NAMED = ("Softmax", "LogSoftmax", "Sigmoid")  # have no parameters, yet their line is worth knowing


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    base = torch.nn.Module
    aside = watch.aside
    grad_enabled = torch.is_grad_enabled
    call = base.__call__
    deep = DeepWindow(watch, probe)
    watch.deep_window = deep
    watch.when_compiling.append(deep.drop)
    dropping = Dropping(torch, probe.guard(lambda at, p: drops(at, p)))
    end_marks = EndMarks(watch)
    state = _Inside()
    history = ModeHistory()
    made_at: Dict[int, Any] = {}

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if aside():
            return call(self, *args, **kwargs)
        if state.inside:
            if state.traced:
                return deep.call(call, self, args, kwargs)
            return call(self, *args, **kwargs)
        if not probe.on:
            return call(self, *args, **kwargs)
        state.inside = True
        watch.running, watch.running_with_grad = self, grad_enabled()
        if watch.sampling and watch.running_with_grad:
            recorded(self, args, kwargs)
        state.traced = watch.deep and watch.running_with_grad and begin_trace(self) is True
        listens = not (watch.running_with_grad or self.training or watch.compiled) and begin_listening(self) is True
        watch.beat.tick(FORWARD)
        try:
            if state.traced:
                result = deep.call(call, self, args, kwargs)
            else:
                result = call(self, *args, **kwargs)
        finally:
            state.inside = state.traced = False
            if listens:
                dropping.end()
            watch.running = None
            watch.beat.tick(OUTSIDE)
        called(self, args, result)
        return result

    base.__call__ = stands_for(call)(__call__)
    watch.stands_at_rest(base, "__call__", call)
    watch.skip_when_compiling.append(__call__.__code__)

    @probe.guard
    def recorded(module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        watch.replay.record(module, args, kwargs)
        if "labels" in kwargs and "input_ids" in kwargs:
            end_marks.look(module, kwargs)

    @probe.guard
    def begin_trace(module: Any) -> bool:
        return deep.begin(module)

    @probe.guard
    def begin_listening(module: Any) -> bool:
        return dropping.begin(module)

    def drops(at: Optional[places.Place], p: float) -> None:
        record = watch.models.get(id(watch.running))
        watch.facts.once(
            ("drops", at), "drops_in_eval", at=at, p=float(p), model=record.name if record else None, loader=watch.current_loader,
            windows=watch.windows,
        )  # fmt: skip

    @probe.guard
    def called(module: Any, args: Tuple[Any, ...], result: Any) -> None:
        record = watch.models.get(id(module))
        if record is None or record.module() is not module:
            if len(watch.models) >= MOST_MODELS:
                return
            with watch.plainly():
                record = register(module)
        elif watch.sampling and record.was_rebuilt(module, watch.moment()):
            with watch.plainly():
                record.list_parts(module)
                describe(record, module)
        setting = (module.training, grad_enabled(), watch.current_loader)
        first = record.count(setting)
        if first:
            record.place(setting, places.of_frame(sys._getframe(2)))
            watch.flush_soon()
        watch.last_call = (record, setting)
        if (watch.sampling or first) and record.sensitive:
            with watch.plainly():
                describe_mode(record, module, setting)
        if watch.deep and setting[1] and not watch.late.busy():
            with watch.plainly():
                watch.unchanged.remember(module, args, result)

    def register(module: Any) -> ModelRecord:
        watch.models_seen += 1
        record = ModelRecord(f"m{watch.models_seen}", module)
        watch.models[id(module)] = record
        if record.parameter_count or record.sensitive:
            describe(record, module)
            if watch.windows == 0:
                count_bad(module, "called", places.of_frame(sys._getframe(3)))
        return record

    def describe(record: ModelRecord, module: Any) -> None:
        parameters = list(module.named_parameters())
        hidden, holder = unregistered(torch, module, made_at), ""
        if not hidden:
            holder, hidden = held_loosely(torch, module, made_at, sys._getframe(4))
        for _, parameter in parameters[:4000]:
            watch.parameters.remember(parameter)
        watch.facts.write(
            "model", id=record.name, kind=record.kind, at=places.of_frame(sys._getframe(4)),
            params=watch.parameters.describe(parameters), made=_creation(module, made_at),
            modules=[[path, type(child).__name__] for path, child in module.named_modules()][:1000],
            plain=record.describe_plain(watch, hidden), holder=holder, windows=watch.windows,
        )  # fmt: skip

    def describe_mode(record: ModelRecord, module: Any, setting: Tuple[bool, bool, Optional[str]]) -> None:
        in_eval: List[Tuple[str, str, bool]] = []
        in_train = 0
        for path, reference in record.sensitive:
            child = reference()
            if child is not None and not child.training:
                frozen = all(not p.requires_grad for p in child.parameters()) and any(True for _ in child.parameters())
                in_eval.append((path, type(child).__name__, frozen))
            else:
                in_train += 1
        key = (setting[0], setting[1])
        if in_eval and not setting[1] and watch.windows > 2 * record.norms_looked_at and not watch.late.busy():
            look_at_statistics(record)
        said = (in_train, tuple(path for path, _, _ in in_eval))
        if record.modes_said.get(key) == said:
            return
        record.modes_said[key] = said
        watch.facts.write(
            "mode", model=record.name, training=setting[0], grad=setting[1], at=places.of_frame(sys._getframe(3)),
            in_eval=in_eval[:MOST_NAMES], eval_count=len(in_eval), train_count=in_train, windows=watch.windows,
            set_at=history.last(module, [path for path, _, _ in in_eval], False) if in_eval else history.last(module, [""], True),
        )  # fmt: skip
        if in_eval and setting[1] and not watch.late.busy():
            look_at_statistics(record)

    def look_at_statistics(record: ModelRecord) -> None:
        """Norm layers in eval mode normalise with what they have learnt, or with the zeros and ones that they were built with."""
        record.norms_looked_at = watch.windows
        paths: List[str] = []
        changed: List[Any] = []
        for path, reference in record.sensitive:
            child = reference()
            mean, variance = getattr(child, "running_mean", None), getattr(child, "running_var", None)
            if child is not None and not child.training and mean is not None and variance is not None and len(paths) < MOST_NAMES:
                paths.append(path)
                changed.append((mean != 0).any() | (variance != 1).any())
        if paths:
            read_all(watch, [flag.float() for flag in changed], lambda values: say_as_built(record, paths, values))

    def say_as_built(record: ModelRecord, paths: List[str], values: List[float]) -> None:
        as_built = [path for path, value in zip(paths, values) if not value]
        if as_built != record.norms_as_built:
            record.norms_as_built = as_built
            watch.facts.write("norms_as_built", model=record.name, paths=as_built, windows=watch.windows)

    def train(self: Any, mode: bool = True) -> Any:
        if aside() or not probe.on:
            return set_mode(self, mode)
        if history.within is not None:
            result = set_mode(self, mode)
            if bool(mode) != history.within:
                set_against(self, mode)
            return result
        history.within = bool(mode)
        changes = self.training != mode
        try:
            result = set_mode(self, mode)
        finally:
            history.within = None
        mode_was_set(self, mode, changes)
        return result

    set_mode = base.train
    base.train = stands_for(set_mode)(train)

    @probe.guard
    def mode_was_set(module: Any, mode: bool, changes: bool) -> None:
        history.note(module, bool(mode), places.of_frame(sys._getframe(2)))
        if changes:
            watch.phase_begins((type(module), bool(mode)))

    @probe.guard
    def set_against(module: Any, mode: bool) -> None:
        """A train() of the program's own, which the call for the whole model comes through, sets the opposite on a part."""
        history.note(module, bool(mode), places.of_frame(sys._getframe(2)))

    for name in ("to", "half", "bfloat16", "type"):
        setattr(base, name, _noting_halves(getattr(base, name), watch, probe))

    zero_grad = base.zero_grad

    @stands_for(zero_grad)
    def zero_grad_watched(self: Any, *args: Any, **kwargs: Any) -> None:
        zero_grad(self, *args, **kwargs)
        if not aside():
            cleared()

    @probe.guard
    def cleared() -> None:
        at = None
        for record in watch.live_records():
            if record.pending:
                at = at or places.of_frame(sys._getframe(2))
            with watch.plainly():
                record.notice_clearing(at)

    base.zero_grad = zero_grad_watched
    watch.stands_at_rest(base, "zero_grad", zero_grad)

    load = base.load_state_dict

    @stands_for(load)
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = load(self, *args, **kwargs)
        loaded(self, kwargs.get("state_dict", args[0] if args else {}), kwargs.get("assign", args[2] if len(args) > 2 else False), result)
        return result

    @probe.guard
    def loaded(module: Any, given: Any, assign: bool, result: Any) -> None:
        missing = set(getattr(result, "missing_keys", None) or ())
        rows = [watch.parameters.number(p) for name, p in module.named_parameters() if name not in missing]
        names = compare(given, module.state_dict()) if missing and getattr(result, "unexpected_keys", None) else None
        watch.facts.write(
            "weights_loaded", kind=type(module).__name__, at=places.of_frame(sys._getframe(2)), assign=bool(assign),
            params=rows[:4000], windows=watch.windows,
            names=None if names is None else {
                "given": len(given), "wanted": names.matched + len(names.missing), "matched": names.matched, "fits": names.fits,
                "removes": names.removes, "adds": names.adds, "missing": names.missing[:3], "unexpected": names.unexpected[:3],
            },
        )  # fmt: skip
        count_bad(module, "loaded", places.of_frame(sys._getframe(2)))

    def count_bad(module: Any, when: str, at: Optional[places.Place]) -> None:
        """Weights that are not finite before anything was learnt; in what is not trained an infinity may be meant (a mask)."""
        if watch.late.busy():
            return
        names: List[str] = []
        counts: List[Any] = []
        with watch.plainly(), torch.no_grad():
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                if plain(torch, tensor):
                    numbers = tensor.detach()
                    names.append(name)
                    counts.append((~torch.isfinite(numbers) if tensor.requires_grad else torch.isnan(numbers)).sum().float())
            read_all(watch, counts, lambda values: say_bad(module, when, at, names, values))

    def say_bad(module: Any, when: str, at: Optional[places.Place], names: List[str], values: List[float]) -> None:
        rows = [(name, int(value)) for name, value in zip(names, values) if value]
        if rows:
            watch.facts.write("bad_weights", kind=type(module).__name__, when=when, at=at, rows=rows[:MOST_NAMES])

    base.load_state_dict = load_state_dict

    register_parameter = base.register_parameter

    @stands_for(register_parameter)
    def register_parameter_watched(self: Any, name: Any, param: Any) -> None:
        register_parameter(self, name, param)
        if param is not None and watch.optimizers_seen and not aside():
            put_in(param)

    @probe.guard
    def put_in(parameter: Any) -> None:
        """A parameter that comes into a module when there is an optimizer already."""
        at = places.of_frame(sys._getframe(2))
        if at is not None:
            watch.parameters.record(parameter).put_in = (at, time.time())

    base.register_parameter = register_parameter_watched
    watch.skip_when_compiling.append(register_parameter_watched.__code__)

    init = base.__init__

    @stands_for(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if probe.on and not aside():
            made(self)

    @probe.guard
    def made(module: Any) -> None:
        if len(made_at) < 50_000:
            frame: Any = sys._getframe(2)
            while frame is not None and frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is module:
                frame = frame.f_back  # the line that builds the module, not its own super().__init__()
            made_at[id(module)] = (type(module).__name__, places.of_frame(frame), time.time())

    base.__init__ = __init__


def _noting_halves(original: Any, watch: Watch, probe: Probe) -> Any:
    """Which line of the user's makes weights 16 bit."""
    halves = (watch.torch.float16, watch.torch.bfloat16)

    @probe.guard
    def note(before: Any, module: Any) -> None:
        after = _dtype(module)
        if after in halves and before not in halves:
            at = places.of_frame(sys._getframe(3))
            watch.facts.once(("halved", at), "halved", at=at, dtype=str(after).replace("torch.", ""))

    dtype = probe.guard(_dtype)

    @stands_for(original)
    def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
        if watch.aside():
            return original(self, *args, **kwargs)
        before = dtype(self)
        result = original(self, *args, **kwargs)
        note(before, self)
        return result

    return changed


def _dtype(module: Any) -> Any:
    return next((parameter.dtype for parameter in module.parameters() if parameter.is_floating_point()), None)


def _creation(module: Any, made_at: Dict[int, Any]) -> List[List[Any]]:
    """Where the model and each submodule with parameters of its own was built, and when."""
    rows: List[List[Any]] = []
    for path, child in module.named_modules():
        known = made_at.get(id(child))
        if (
            known is not None
            and known[0] == type(child).__name__
            and (child._parameters or known[0] in NAMED or not path)
            and len(rows) < 1000
        ):
            rows.append([path, known[1], known[2]])
    return rows


def unregistered(torch: Any, module: Any, made_at: Dict[int, Any]) -> List[Tuple[str, str, Any, List[Any]]]:
    """Layers and trainable tensors that hang on a module in plain lists, dicts or attributes, where torch cannot see them."""
    registered = {id(child) for child in module.modules()}
    known = {id(parameter) for parameter in module.parameters()}
    rows: List[Tuple[str, str, Any, List[Any]]] = []
    for path, child in module.named_modules():
        if not type(child).__module__.startswith("torch."):
            for name, value in list(vars(child).items()):
                if not name.startswith("_"):
                    _collect(torch, f"{path}.{name}".lstrip("."), value, registered, known, rows, 0, made_at)
    return rows[:MOST_NAMES]


def held_loosely(torch: Any, module: Any, made_at: Dict[int, Any], frame: Any) -> Tuple[str, List[Tuple[str, str, Any, List[Any]]]]:
    """The module whose method calls this one and holds it in a plain list, without being called itself: its kind, and what it hides."""
    while frame is not None and places.kind_of(frame.f_code.co_filename) != places.USER:
        frame = frame.f_back
    owner = frame.f_locals.get("self") if frame is not None else None
    if not isinstance(owner, torch.nn.Module) or any(child is module for child in owner.modules()):
        return "", []
    rows = unregistered(torch, owner, made_at)
    own = {id(parameter) for parameter in module.parameters()}
    return (type(owner).__name__, rows) if any(id(parameter) in own for row in rows for parameter in row[3]) else ("", [])


def _collect(
    torch: Any, path: str, value: Any, registered: Any, known: Any, rows: Any, level: int, made_at: Dict[int, Any]
) -> None:
    if isinstance(value, torch.nn.Module):
        hidden = [p for p in value.parameters() if p.requires_grad and id(p) not in known]
        if id(value) not in registered and hidden:
            rows.append((path, type(value).__name__, made_at.get(id(value), (None, None))[1], hidden))
    elif isinstance(value, torch.Tensor):
        hidden = [leaf for leaf in _leaves_of(value) if leaf.requires_grad and id(leaf) not in known]
        if hidden:
            rows.append((path, "Tensor", None, hidden))
    elif level < 2 and isinstance(value, (list, tuple)):
        for index, item in enumerate(value[:64]):
            _collect(torch, f"{path}[{index}]", item, registered, known, rows, level + 1, made_at)
    elif level < 2 and isinstance(value, dict):
        for key, item in list(value.items())[:64]:
            _collect(torch, f"{path}[{key!r}]", item, registered, known, rows, level + 1, made_at)
    elif level < 2 and (hasattr(type(value), "__dataclass_fields__") or isinstance(value, SimpleNamespace) or places.is_users(value)):
        for name, item in list(getattr(value, "__dict__", {}).items())[:64]:
            _collect(torch, f"{path}.{name}", item, registered, known, rows, level + 1, made_at)


def _leaves_of(tensor: Any) -> List[Any]:
    """A trainable tensor itself, or what it was computed from: `nn.Parameter(x).t()` and `nn.Parameter(x) * 0.1` are no parameters."""
    if tensor.grad_fn is None:
        return [tensor]
    found: List[Any] = []
    nodes = [tensor.grad_fn]
    for node in nodes:
        if hasattr(node, "variable"):
            found.append(node.variable)
        nodes += [following for following, _ in node.next_functions if following is not None and len(nodes) < MOST_NODES]
    return found


class _Inside:
    """Whether the program is inside a model's forward, and whether that forward is being traced."""

    __slots__ = ("inside", "traced")

    def __init__(self) -> None:
        self.inside = self.traced = False


class ModeHistory:
    """Which line last put which module into train or eval mode."""

    def __init__(self) -> None:
        self.within: Optional[bool] = None  # the mode that a call, which is still going on, sets
        self._calls: Dict[int, Tuple[bool, Optional[places.Place], int]] = {}
        self._count = 0

    def note(self, module: Any, mode: bool, at: Optional[places.Place]) -> None:
        self._count += 1
        if len(self._calls) < 10_000:
            self._calls[id(module)] = (mode, at, self._count)

    def last(self, root: Any, paths: List[str], mode: bool) -> Optional[places.Place]:
        """The line that last set this mode on the module at one of the paths, or on a module above it."""
        children = dict(root.named_modules())
        best: Tuple[int, Optional[places.Place]] = (0, None)
        for path in paths:
            parts = path.split(".") if path else []
            for depth in range(len(parts) + 1):
                known = self._calls.get(id(children.get(".".join(parts[:depth]))))
                if known is not None and known[0] == mode and known[2] > best[0]:
                    best = (known[2], known[1])
        return best[1]
