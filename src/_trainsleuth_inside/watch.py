"""The state that the probes of one process share: windows, optimizers, parameters, and what is being looked at closely."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from _trainsleuth_inside.aside import aside_of, readable
from _trainsleuth_inside.facts import FactWriter
from _trainsleuth_inside.governor import Period, Share
from _trainsleuth_inside.heartbeat import OUTSIDE, Heartbeat
from _trainsleuth_inside.late import LateValues
from _trainsleuth_inside.models import ModelRecord
from _trainsleuth_inside.parameters import ParameterBook
from _trainsleuth_inside.places import Place
from _trainsleuth_inside.replay import Replay
from _trainsleuth_inside.series import LossSeries
from _trainsleuth_inside.tally import Tally
from _trainsleuth_inside.unchanged import Unchanged
from _trainsleuth_inside.windows import OptimizerRecord

EACH_WINDOW_UNTIL = 16
AWAKE_FOR = 3
MOST_AWAKE = 0.001  # seconds a window that may be booked as the price of being awake
FIRST_PHASES = 8
ALL_READ_UNTIL, SHORT = 2000, 0.002  # losses; seconds a window: of shorter ones not every loss is read from then on
READ_EVERY, MOST_PASSED_OVER = 0.1, 249  # seconds; losses
OFTENEST_UPKEEP, RAREST_UPKEEP = 0.02, 1.0  # seconds; while resting, learning rates are noted and rows written so often at most, and at least
ROWS = 20  # are written in the time that has passed, if the training is young: a run of a second has a curve, too
MOST_WALKS = 4
MOST_AT_THE_END = 50_000_000  # numbers that are looked at when the program ends
SHORTEST_INTERVAL = 0.25  # seconds between rows, once the training is not young any more


class Watch:
    def __init__(self, torch: Any, facts: FactWriter, beat: Heartbeat, budget: float) -> None:
        self.torch = torch
        self.facts = facts
        self.beat = beat
        self.late = LateValues(torch)
        self.aside = aside_of(torch)
        self.plainly = torch._C.DisableTorchFunction  # within it, no code of a tensor subclass or of a mode is run
        self.period = Period()
        self.numbers = Share(0.15 * budget, allowance=0.03)  # norms of gradients, weights and updates; values at the loss
        self.depth = Share(0.08 * budget, allowance=0.05, densest=8)  # every module call of a window, and a walk through its graph
        self.parameters = ParameterBook(self)
        self.optimizers: Dict[int, OptimizerRecord] = {}
        self.optimizers_seen = 0
        self.models: Dict[int, ModelRecord] = {}
        self.models_seen = 0
        self.deep_window: Any = None
        self.one_of_many = os.environ.get("WORLD_SIZE", "1") != "1"  # a rank among others; who is started otherwise says so later
        self.unchanged = Unchanged(self)
        self.replay = Replay(self)
        self.running: Any = None  # the model whose forward is running
        self.running_with_grad = False
        self.last_call: Any = None  # the model called last, and in which setting
        self.skip_when_compiling: List[Any] = []  # code that dynamo should look through, as it does through torch's own
        self.current_loader: Optional[str] = None  # the one that gave the last batch
        self.loss_cost = 0.0  # seconds spent at loss calls of the present window
        self.losses: Dict[Place, LossSeries] = {}
        self._windows = 0
        self.tally = Tally(lambda optimizer: None)  # the windows of a resting run that are not booked yet
        self.backwards = 0
        self.resting = False  # nobody looks at gradients and calls at present: steps are counted, losses read
        self.pass_over = 0  # at rest, so many losses are not read after each that is
        self.one_each = False  # at rest and with losses passed over: each window has one backward, so that they need not be counted
        self._apart = -1  # backwards beyond windows at the last upkeep
        self._away_since = 0  # the window in which backward was left alone; 0: it is not
        self.unread = 0  # so many of the coming ones
        self._awake_until = 0
        self._unstepped_at = 4  # backwards
        self._looks_for_bad = 4
        self._woke, self._woke_in = 0.0, 0  # when, and in which window
        self._phases: Dict[Any, int] = {}
        self._exchanged: List[Tuple[Any, str, Any, Any]] = []  # owner, name, ours, and what stands there at rest
        self.when_rest_changes: List[Callable[[bool], None]] = []
        self.backward_at_rest: Any = None  # owner, name, the thin wrapper, and torch's own
        self.sampling = True  # the present window's numbers are taken
        self.deep = True  # the present window's module calls are recorded
        self._deep_walks = 0  # in the present window
        self.compiled = False  # something is compiled: deep instruments stay off for good
        self.when_compiling: List[Callable[[], None]] = []
        self.before_scaling: Callable[[Any], Any] = lambda loss: loss
        self.scaled: Any = None  # a scaled loss and the loss it came from
        self.scaled_by: Any = None  # the scaler, and the number of the operation in the graph
        self.in_scaler_step = False  # a scaler is stepping an optimizer: it unscales gradients itself
        self.precision: Any = None  # what looks at half precision; told of backwards and steps that are looked at
        self.count_native: Callable[[], None] = lambda: None  # called after each backward of a rank
        self.when_window_closes: List[Callable[[OptimizerRecord], None]] = []
        self.when_backward_ended: List[Callable[[Any], None]] = []
        self._began = self._flushed = self._first_backward = time.perf_counter()
        self._pid = os.getpid()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """What the parent has not written yet is the parent's to write."""
        self._pid = os.getpid()
        self.book()
        self.attend_to_backward()
        self._began = self._flushed = self._first_backward = time.perf_counter()
        self.numbers.restart()
        self.depth.restart()
        self._windows = self.backwards = 0
        for series in self.losses.values():
            series.forget()
        for record in self.optimizers.values():
            record.forget()
        for model in self.models.values():
            model.take()

    # -- windows ---------------------------------------------------------------------------------------------------

    @property
    def windows(self) -> int:
        self.book()
        return self._windows

    def record_of(self, optimizer: Any) -> Optional[OptimizerRecord]:
        self.book()
        known = self.optimizers.get(id(optimizer))
        if known is None:  # Accelerate's wrapper is an optimizer too, and holds the one that steps
            known = self.optimizers.get(id(getattr(optimizer, "optimizer", None)))
        return known

    def book(self) -> None:
        """Add the windows that were only counted; they are counted so while there is one optimizer."""
        passed = self.tally.take()
        if passed:
            self._windows += passed
            for record in self.optimizers.values():
                record.windows += passed

    def count(self, record: OptimizerRecord) -> None:
        """One more window of a resting run."""
        self.book()
        self._windows += 1
        record.windows += 1

    def live_records(self) -> List[OptimizerRecord]:
        return list(self.optimizers.values())

    def backward_ended(self, place: Optional[Place], loss: Any) -> None:
        self.backwards += 1
        if self.backwards == 1:
            self._first_backward = time.perf_counter()
        self.beat.backwards = self.backwards
        series = self.read_loss(place, loss)
        for reaction in list(self.when_backward_ended):
            reaction(loss)
        if series is not None and series.is_bad and not self.when_backward_ended:
            self.replay.look()
        if self.backwards >= self._unstepped_at:
            self._unstepped_at = 2 * self.backwards
            self._write_unstepped()
        self._deep_walks += 1
        if self._deep_walks >= MOST_WALKS:
            self.deep = False
        if self.windows == 0 or self.backwards <= EACH_WINDOW_UNTIL:
            self._flush_if_due(self.backwards <= EACH_WINDOW_UNTIL)

    def read_loss(self, place: Optional[Place], loss: Any) -> Optional[LossSeries]:
        if loss is None or place is None:
            return None
        series = self.losses.get(place)
        if series is None:
            series = self.losses[place] = LossSeries(place)
        if loss.device.type == "cpu":
            series.add(loss.item())
        elif self.sampling:
            self.late.read(loss.detach().reshape(1), series.add_all)
        return series

    def _write_unstepped(self) -> None:
        """Optimizers that have not stepped yet: has anything moved their weights all the same?"""
        for record in self.optimizers.values():
            optimizer = record.optimizer() if record.windows == 0 else None
            if optimizer is not None:
                owned = [parameter for group in optimizer.param_groups for parameter in group["params"]]
                moved = [known for known in map(self.parameters.moved, owned[:200]) if known is not None]
                if moved:
                    self.facts.write("unstepped", opt=record.name, backwards=self.backwards, looked=len(moved), moved=sum(moved))

    def window_closed(self, record: OptimizerRecord, counted: bool = False) -> None:
        """After each step of an optimizer, and after each step that a scaler skipped; while resting, after one step in a few."""
        self._windows += not counted
        self.attend_to_backward()
        self.beat.windows, self.beat.backwards = self.windows, self.backwards
        self.beat.tick(OUTSIDE)
        self.period.tick(self.windows)
        self.late.poll()
        for model in self.models.values():
            model.close_window()
        for reaction in self.when_window_closes:
            reaction(record)
        self._flush_if_due(record.windows <= EACH_WINDOW_UNTIL and not record.repeated)
        coming = 1 + (self._windows if record.repeated else record.windows)
        record.sampling = self.numbers.wants(coming)
        record.deep = not self.compiled and self.depth.wants(coming)
        self._deep_walks = 0
        self.sampling, self.deep = record.sampling, record.deep
        if len(self.optimizers) > 1:
            young = self._windows <= EACH_WINDOW_UNTIL  # later, one that has never stepped asks for no looks: it may only hold another (SAM)
            records = [other for other in self.optimizers.values() if other.windows or young]
            self.sampling = self.sampling or any(other.sampling for other in records)
            self.deep = not self.compiled and (self.deep or any(other.deep for other in records))
        self._rest_or_wake(record)

    # -- resting ---------------------------------------------------------------------------------------------------

    def stands_at_rest(self, owner: Any, name: str, at_rest: Any) -> None:
        """While nobody looks, `at_rest` takes the place of what a probe has put there: even a thin wrapper costs too much."""
        self._exchanged.append((owner, name, vars(owner)[name], at_rest))

    def _rest_or_wake(self, record: OptimizerRecord) -> None:
        """Look at three windows in a row around each that is chosen: what happens to gradients shows over several."""
        looks = self.sampling or self.deep
        if looks:
            self._awake_until = self.windows + AWAKE_FOR * len(self.optimizers)
        if looks or self.windows < self._awake_until or not self._may_rest():
            self.wake()
            return
        if not self.resting:
            self._book_time_awake()
            self.unchanged.forget()
            self.replay.forget()
            self.resting = True
            for owner, name, _, at_rest in self._exchanged:
                setattr(owner, name, at_rest)
            for reaction in self.when_rest_changes:
                reaction(True)
            for other in self.optimizers.values():
                self._choose_next_upkeep(other)
        self._choose_next_upkeep(record)
        rapid = self.period.seconds < SHORT and self.backwards > ALL_READ_UNTIL
        few = min(MOST_PASSED_OVER, int(READ_EVERY / max(self.period.seconds, 1e-6)))
        self.pass_over = few if rapid and len(self.losses) == 1 else 0
        apart, self._apart = self._apart, self.backwards - self.windows
        self.one_each = bool(self.pass_over) and apart == self._apart and len(self.optimizers) == 1

    def leave_backward_alone(self) -> None:
        """Until a few windows have passed, not even the thin wrapper stands in the way of backward."""
        owner, name, at_rest, bare = self.backward_at_rest
        if vars(owner).get(name) is at_rest and self.resting:
            self._away_since, self.unread = self.windows + 1, 0
            setattr(owner, name, bare)
            for record in self.optimizers.values():
                record.attend_at = min(record.attend_at, record.windows + self.pass_over)
            self.count_thinly()

    def count_thinly(self) -> None:
        """Windows that nobody attends to need only be counted, if it is clear whose they are."""
        if self.resting and len(self.optimizers) == 1:
            self.book()
            key, record = next(iter(self.optimizers.items()))
            self.tally.grant(key, max(0, record.attend_at - record.windows - 1))

    def attend_to_backward(self) -> None:
        """It is counted and read again; meanwhile there was one in each window."""
        if self._away_since:
            self.backwards += max(0, self.windows - self._away_since)
            self._away_since = 0
            owner, name, at_rest, bare = self.backward_at_rest
            if vars(owner).get(name) is bare:
                setattr(owner, name, at_rest)

    def _book_time_awake(self) -> None:
        """Windows take longer while we look; how much longer shows against the usual window, unless something else is slow."""
        windows = self.windows - self._woke_in
        if self._woke_in and windows <= 4 * AWAKE_FOR:
            longer = time.perf_counter() - self._woke - windows * self.period.seconds
            self.numbers.was_awake(min(max(longer, 0.0), MOST_AWAKE * windows), self.period.seconds)

    def _choose_next_upkeep(self, record: OptimizerRecord) -> None:
        """The window after which more is to be done than counting: to look at the next one, or because some time has passed."""
        ahead = self._windows - record.windows if record.repeated else 0
        coming = ahead + record.windows + 1
        look = min(self.numbers.next_after(coming), self.depth.next_after(coming)) - 1 - ahead
        pause = min(RAREST_UPKEEP, max(OFTENEST_UPKEEP, (time.perf_counter() - self._first_backward) / ROWS))
        record.upkeep_at = record.attend_at = min(look, record.windows + max(1, int(pause / max(self.period.seconds, 1e-6))))

    def _may_rest(self) -> bool:
        """Not while something is compiled, in a trial, before each optimizer has begun, or when others have wrapped our wrappers."""
        return (
            not self.compiled
            and not self.when_window_closes
            and not self.when_backward_ended
            and all(record.windows == 0 or record.windows > EACH_WINDOW_UNTIL or record.repeated for record in self.optimizers.values())
            and (self.resting or all(vars(owner).get(name) is ours for owner, name, ours, _ in self._exchanged))
        )

    def wake(self) -> None:
        if self.resting:
            self.attend_to_backward()
            self.beat.windows, self.beat.backwards = self.windows, self.backwards  # the next tick writes them
            self._woke, self._woke_in = time.perf_counter(), self.windows
            self.tally.grant(0, 0)
            self.resting = False
            for owner, name, ours, at_rest in self._exchanged:
                if vars(owner).get(name) is at_rest:
                    setattr(owner, name, ours)
            for reaction in self.when_rest_changes:
                reaction(False)
            for record in self.optimizers.values():
                record.wake()

    def look_at_what_follows(self) -> None:
        """A loss was bad while nobody looked: the next windows are looked at, in case the program lives on."""
        if self._looks_for_bad:
            self._looks_for_bad -= 1
            self.wake()
            self.sampling = True
            self._awake_until = max(self._awake_until, self.windows + AWAKE_FOR)

    def phase_begins(self, which: Any) -> None:
        """An epoch, a validation, a change of mode: look at what comes next. One that begins again and again is known by then."""
        count = self._phases[which] = self._phases.get(which, 0) + 1
        if count <= FIRST_PHASES or count & (count - 1) == 0:
            self.wake()
            self._awake_until = max(self._awake_until, self.windows + AWAKE_FOR)

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
        self.wake()
        self.deep = False
        for record in self.optimizers.values():
            record.deep = False
        for reaction in self.when_compiling:
            reaction()

    # -- writing ---------------------------------------------------------------------------------------------------

    def _flush_if_due(self, at_once: bool) -> None:
        now = time.perf_counter()
        young = (now - self._first_backward) / ROWS
        if at_once or now - self._flushed >= max(min(SHORTEST_INTERVAL, young), (now - self._began) / 2000):
            self.flush()

    def flush_soon(self) -> None:
        self._flushed = -1e9

    def flush(self) -> None:
        self._flushed = time.perf_counter()
        self.book()
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

    def look_at_weights(self, steps: int) -> None:
        """Weights that are NaN when an optimizer goes, or the program ends: where each later loss was passed over, no backward has shown it."""
        if self.aside():  # an optimizer may go at any moment, within a mode of the program's own, too
            return
        left, bad = MOST_AT_THE_END, []
        with self.plainly(), self.torch.no_grad():
            for parameter in self.parameters.alive():
                if not readable(parameter) or parameter.device.type != "cpu" or not (parameter.requires_grad and parameter.is_floating_point()):
                    continue
                left -= parameter.numel()
                if left >= 0 and bool(parameter.isnan().any()):
                    bad.append(self.parameters.number(parameter))
        if bad:
            self.facts.write("bad_at_the_end", params=bad[:16], windows=steps)

    def end(self) -> None:
        if self._pid == os.getpid():
            self.late.drain()
            if self.backwards:
                self._write_unstepped()
                self.look_at_weights(max((record.windows for record in self.optimizers.values()), default=0))
            self.flush()
