"""The state that the probes of one process share: windows, optimizers, parameters, and what is being looked at closely."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional

from _trainsleuth_inside.aside import aside_of
from _trainsleuth_inside.facts import FactWriter
from _trainsleuth_inside.governor import Period, Share
from _trainsleuth_inside.heartbeat import OUTSIDE, Heartbeat
from _trainsleuth_inside.late import LateValues
from _trainsleuth_inside.models import ModelRecord
from _trainsleuth_inside.parameters import ParameterBook
from _trainsleuth_inside.places import Place
from _trainsleuth_inside.series import LossSeries
from _trainsleuth_inside.windows import OptimizerRecord

EACH_WINDOW_UNTIL = 16
MOST_WALKS = 4
SHORTEST_INTERVAL = 0.25


class Watch:
    def __init__(self, torch: Any, facts: FactWriter, beat: Heartbeat, budget: float) -> None:
        self.torch = torch
        self.facts = facts
        self.beat = beat
        self.late = LateValues(torch)
        self.aside = aside_of(torch)
        self.plainly = torch._C.DisableTorchFunction  # within it, no code of a tensor subclass or of a mode is run
        self.period = Period()
        self.numbers = Share(budget / 2)  # norms of gradients, weights and updates; values at the loss
        self.depth = Share(budget / 4, densest=8)  # every module call of a window, and a walk through its graph
        self.parameters = ParameterBook(self)
        self.optimizers: Dict[int, OptimizerRecord] = {}
        self.optimizers_seen = 0
        self.models: Dict[int, ModelRecord] = {}
        self.models_seen = 0
        self.deep_window: Any = None
        self.running: Any = None  # the model whose forward is running
        self.last_call: Any = None  # the model called last, in which setting, with which arguments
        self.skip_when_compiling: List[Any] = []  # code that dynamo should look through, as it does through torch's own
        self.current_loader: Optional[str] = None  # the one that gave the last batch
        self.loss_cost = 0.0  # seconds spent at loss calls of the present window
        self.losses: Dict[Place, LossSeries] = {}
        self.windows = 0
        self.backwards = 0
        self.sampling = True  # the present window's numbers are taken
        self.deep = True  # the present window's module calls are recorded
        self._deep_walks = 0  # in the present window
        self.compiled = False  # something is compiled: deep instruments stay off for good
        self.when_compiling: List[Callable[[], None]] = []
        self.before_scaling: Callable[[Any], Any] = lambda loss: loss
        self.scaled: Any = None  # a scaled loss and the loss it came from
        self.when_window_closes: List[Callable[[OptimizerRecord], None]] = []
        self.when_backward_ended: List[Callable[[Any], None]] = []
        self._began = self._flushed = time.perf_counter()
        self._pid = os.getpid()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """What the parent has not written yet is the parent's to write."""
        self._pid = os.getpid()
        self.windows = self.backwards = 0
        for series in self.losses.values():
            series.forget()
        for record in self.optimizers.values():
            record.forget()
        for model in self.models.values():
            model.take()

    # -- windows ---------------------------------------------------------------------------------------------------

    def record_of(self, optimizer: Any) -> Optional[OptimizerRecord]:
        return self.optimizers.get(id(optimizer))

    def live_records(self) -> List[OptimizerRecord]:
        return list(self.optimizers.values())

    def backward_ended(self, place: Optional[Place], loss: Any) -> None:
        self.backwards += 1
        self.beat.backwards = self.backwards
        if loss is not None and place is not None:
            series = self.losses.get(place)
            if series is None:
                series = self.losses[place] = LossSeries(place)
            if loss.device.type == "cpu":
                series.add(loss.item())
            elif self.sampling:
                self.late.read(loss.detach().reshape(1), series.add_all)
        for reaction in list(self.when_backward_ended):
            reaction(loss)
        if self.windows == 0 and self.backwards >= 4 and self.backwards & (self.backwards - 1) == 0:
            self._write_unstepped()
        self._deep_walks += 1
        if self._deep_walks >= MOST_WALKS:
            self.deep = False
        if self.windows == 0 or self.backwards <= EACH_WINDOW_UNTIL:
            self._flush_if_due(self.backwards <= EACH_WINDOW_UNTIL)

    def _write_unstepped(self) -> None:
        """No optimizer has stepped yet: has anything moved the weights all the same?"""
        owned = self.owned_parameters()
        moved = [known for known in map(self.parameters.moved, owned[:200]) if known is not None]
        if moved:
            self.facts.write("unstepped", backwards=self.backwards, looked=len(moved), moved=sum(moved))

    def window_closed(self, record: OptimizerRecord) -> None:
        """After each step of an optimizer, and after each step that a scaler skipped."""
        self.windows += 1
        self.beat.windows = self.windows
        self.beat.tick(OUTSIDE)
        self.period.tick()
        self.late.poll()
        for reaction in self.when_window_closes:
            reaction(record)
        self._flush_if_due(record.windows <= EACH_WINDOW_UNTIL)
        record.sampling = self.numbers.wants(record.windows + 1)
        record.deep = not self.compiled and self.depth.wants(record.windows + 1)
        self._deep_walks = 0
        self.sampling, self.deep = record.sampling, record.deep
        if len(self.optimizers) > 1:
            records = self.optimizers.values()
            self.sampling = self.sampling or any(other.sampling for other in records)
            self.deep = not self.compiled and (self.deep or any(other.deep for other in records))

    def owned_parameters(self) -> List[Any]:
        """Every parameter that a living optimizer holds."""
        found: List[Any] = []
        for record in self.optimizers.values():
            optimizer = record.optimizer()
            if optimizer is not None:
                for group in optimizer.param_groups:
                    found.extend(group["params"])
        return found

    def model_parameters(self) -> List[Any]:
        """Every parameter of the models that were called, each once."""
        found: Dict[int, Any] = {}
        for record in list(self.models.values()):
            module = record.module()
            if module is not None:
                for parameter in module.parameters():
                    found.setdefault(id(parameter), parameter)
            for reference in record.plain:
                parameter = reference()
                if parameter is not None:
                    found.setdefault(id(parameter), parameter)
        return list(found.values())

    def moment(self) -> int:
        """What counts as one occasion to look: a window, or while no optimizer steps a doubling of the backwards."""
        return self.windows + 1 if self.windows else -self.backwards.bit_length()

    def something_is_compiled(self) -> None:
        self.compiled = True
        self.deep = False
        for record in self.optimizers.values():
            record.deep = False
        for reaction in self.when_compiling:
            reaction()

    # -- writing ---------------------------------------------------------------------------------------------------

    def _flush_if_due(self, at_once: bool) -> None:
        now = time.perf_counter()
        if at_once or now - self._flushed >= max(SHORTEST_INTERVAL, (now - self._began) / 2000):
            self.flush()

    def flush_soon(self) -> None:
        self._flushed = -1e9

    def flush(self) -> None:
        self._flushed = time.perf_counter()
        for record in self.optimizers.values():
            row = record.take()
            if row is not None:
                self.facts.write("windows", **row)
        for series in self.losses.values():
            row = series.take()
            if row is not None:
                self.facts.write("loss", **row, window=self.windows)
        for model in list(self.models.values()):
            for row in model.take():
                self.facts.write("calls", **row)

    def end(self) -> None:
        if self._pid == os.getpid():
            self.late.drain()
            if self.windows == 0 and self.backwards:
                self._write_unstepped()
            self.flush()
