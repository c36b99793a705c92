"""Finds who changed a tensor between the operation that saved it for backward and the backward that needs it.

A dispatch mode notes every operation that writes into a tensor, with its line. Hooks on saved tensors note version and numbers when
autograd saves one, and compare both when autograd uses it. They take the place of torch's own check of versions, so a change
that torch would have reported is found here first; one that torch does not see (a write through `.data`, a numpy array on the same
memory, a fused optimizer) shows in the numbers.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.instruments import graphs
from _trainsleuth_inside.instruments.examination import leave
from _trainsleuth_inside.instruments.numbers import storage_of, tensors_in
from _trainsleuth_inside.instruments.whereabouts import Surveyor, Whereabouts, dispatching
from _trainsleuth_inside.places import USER, Place, kind_of, place_of

KEPT = 1 << 16  # numbers of a saved tensor that are kept to compare
MOST_TOLD = 8
UPDATED_BY_DESIGN = ("BatchNorm", "InstanceNorm")  # save running statistics that they update, and do not use


class Write:
    """One operation that wrote into a storage."""

    __slots__ = ("bumped", "number", "op", "version", "where")

    def __init__(self, number: int, op: str, version: int, bumped: bool, where: Whereabouts) -> None:
        self.number, self.op, self.version, self.bumped, self.where = number, op, version, bumped, where


class Saved:
    """A tensor that autograd has saved: its state at that time."""

    __slots__ = ("after", "numbers", "reported", "tensor", "version", "where")

    def __init__(self, tensor: Any, version: int, numbers: Any, after: int, where: Whereabouts) -> None:
        self.tensor, self.version, self.numbers, self.after, self.where = tensor, version, numbers, after, where
        self.reported = False


class MutationExamination:
    def __init__(self, watch: Any, probe: Probe) -> None:
        self._watch, self._torch, self._probe = watch, watch.torch, probe
        self._surveyor = Surveyor(watch)
        self._writes: Dict[int, List[Write]] = {}
        self._count = 0
        self._armed = False
        self._armed_at = 0.0
        self._pid = os.getpid()
        self._slots: Dict[Any, Tuple[Tuple[int, str, bool, bool], ...]] = {}
        self._outstanding: List[Saved] = []
        self._tracing = False
        self._lines: Dict[int, Place] = {}  # of each traced frame the line that is being run
        self._mode = dispatching(self.run)
        self._backwards = graphs.BackwardBook(watch, self._surveyor, probe)

    def arm(self) -> None:
        if self._armed or self._watch.compiled or self._torch._C._len_torch_dispatch_stack():
            return
        self._armed, self._armed_at = True, time.time()
        hooks = self._torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
        hooks.__enter__()
        self._mode.__enter__()
        self._backwards.begin()

    # -- writes ----------------------------------------------------------------------------------------------------

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        if self._pid != os.getpid():
            return function(*args, **kwargs)
        where = self._surveyor.here()
        written: List[Tuple[Any, int, bool]] = []
        for index, name, by_name, is_list in self._written_by(function):
            value = kwargs.get(name) if by_name or index >= len(args) else args[index]
            for tensor in tensors_in(self._torch, value):
                version = _version(tensor)
                if version is not None:
                    written.append((tensor, version, is_list))
        result = function(*args, **kwargs)
        op = str(function)
        for tensor, version, is_list in written:
            self._count += 1
            bumps = "_fused_" not in op
            if is_list and bumps and _version(tensor) == version:
                self._torch.autograd.graph.increment_version(tensor)  # outside of a dispatch mode torch does this by itself
            self._writes.setdefault(storage_of(tensor), []).append(Write(self._count, op, version, bumps, where))
        return result

    def _written_by(self, function: Any) -> Tuple[Tuple[int, str, bool, bool], ...]:
        known = self._slots.get(function)
        if known is None:
            known = self._slots[function] = tuple(
                (index, argument.name, argument.kwarg_only, argument.type.kind() == "ListType")
                for index, argument in enumerate(function._schema.arguments)
                if argument.alias_info is not None and argument.alias_info.is_write
            )
        return known

    # -- saved tensors ---------------------------------------------------------------------------------------------

    def _pack(self, tensor: Any) -> Any:
        version = _version(tensor)
        if version is None or self._pid != os.getpid():
            return tensor
        saved = Saved(tensor, version, self._copy(tensor), self._count, self._surveyor.at_save())
        if self._tracing:
            self._outstanding.append(saved)
        return saved

    def _unpack(self, saved: Any) -> Any:
        if isinstance(saved, Saved) and not saved.reported:
            self._compare(saved)
        return saved.tensor if isinstance(saved, Saved) else saved

    def _compare(self, saved: Saved) -> None:
        version = _version(saved.tensor)
        node = self._torch._C._current_autograd_node()
        name = node.name() if node is not None else "?"
        changed = not self._same(saved)
        if version == saved.version and (not changed or any(part in name for part in UPDATED_BY_DESIGN)):
            return
        writes = [write for write in self._writes.get(storage_of(saved.tensor), []) if write.number > saved.after]
        if version == saved.version and not writes and not self._tracing:
            saved.reported = True
            self._tell(saved, name, version, writes, final=False)
            self._trace()
            return
        self._tell(saved, name, version, writes, final=True)

    def _copy(self, tensor: Any) -> Any:
        if tensor.layout != self._torch.strided or tensor.device.type == "meta":
            return None
        flat = tensor.detach().flatten()
        return flat[:: max(1, -(-flat.numel() // KEPT))].clone()

    def _same(self, saved: Saved) -> bool:
        if saved.numbers is None:
            return True
        now = self._copy(saved.tensor)
        return now is None or bool(((now == saved.numbers) | ((now != now) & (saved.numbers != saved.numbers))).all())

    def _tell(self, saved: Saved, name: str, version: Optional[int], writes: List[Write], final: bool) -> None:
        told = [
            {"op": w.op, "at": w.where.at, "above": w.where.above, "phase": w.where.phase, "module": w.where.module,
             "version": w.version, "seen_by_torch": w.bumped}
            for w in writes[-MOST_TOLD:]
        ]  # fmt: skip
        about = {
            "saver": name, "saved_at": saved.where.at, "saved_above": saved.where.above, "module": saved.where.module,
            "module_kind": saved.where.module_kind, "shape": list(saved.tensor.shape), "dtype": str(saved.tensor.dtype),
            "saved_version": saved.version, "version": version, "writes": told, "more_writes": max(0, len(writes) - MOST_TOLD),
            "silent": version == saved.version or not any(w.bumped for w in writes), "parameter": self._name(saved.tensor),
            "used_at": self._backwards.place(), "seconds": round(time.time() - self._armed_at, 3),
        }  # fmt: skip
        if final:
            leave(self._watch, "mutation", what="mutations", mutation=about)
        self._watch.facts.write("examined", result="mutation", windows=self._watch.windows, backwards=self._watch.backwards,
                                what="mutations", mutation=about)  # fmt: skip

    def _name(self, tensor: Any) -> str:
        """The name of the parameter whose memory it is, if it is one."""
        storage = storage_of(tensor)
        for record in list(self._watch.models.values()):
            root = record.module()
            for name, parameter in root.named_parameters() if root is not None else ():
                if storage_of(parameter) == storage:
                    return str(name)
        return ""

    # -- writes that torch does not see ----------------------------------------------------------------------------

    def _trace(self) -> None:
        """From now on look after each line of the program whether a saved tensor has changed."""
        self._tracing = True
        frame: Any = sys._getframe(1)
        sys.settrace(self._traced)
        while frame is not None:
            if kind_of(frame.f_code.co_filename) == USER:
                frame.f_trace = self._traced
            frame = frame.f_back

    def _traced(self, frame: Any, event: str, argument: Any) -> Any:
        if kind_of(frame.f_code.co_filename) != USER:
            return None
        if event in ("line", "return"):
            before = self._lines.get(id(frame))
            if before is not None:
                self._look(before)
            self._lines[id(frame)] = place_of(frame)
            if event == "return":
                self._lines.pop(id(frame), None)
        return self._traced

    def _look(self, line: Place) -> None:
        for saved in self._outstanding:
            if _version(saved.tensor) == saved.version and not self._same(saved):
                where = Whereabouts("forward", line, "", "", "", [])
                self._count += 1
                write = Write(self._count, "a write that torch does not see", saved.version, False, where)
                if not any(known.number > saved.after for known in self._writes.get(storage_of(saved.tensor), [])):
                    self._writes.setdefault(storage_of(saved.tensor), []).append(write)
        self._outstanding = self._outstanding[-500:]


def _version(tensor: Any) -> Optional[int]:
    try:
        return int(tensor._version)
    except RuntimeError:  # an inference tensor keeps none
        return None
