"""Records what each optimizer holds, when it steps, what it clears, and by how much its parameters move."""

from __future__ import annotations

import importlib
import time
import weakref
from typing import Any, Dict, Optional

from _trainsleuth_inside import places
from _trainsleuth_inside.accelerating import watch_withheld_steps
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.heartbeat import STEP
from _trainsleuth_inside.movement import Snapshot
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.tally import NOTHING, Tally
from _trainsleuth_inside.watch import Watch
from _trainsleuth_inside.windows import OptimizerRecord

FIRST_OF_A_LINE = 8  # optimizers that one line makes, each of which is looked at from its first step on


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    base = torch.optim.Optimizer
    aside, known = watch.aside, watch.optimizers
    snapshots: Dict[int, Snapshot] = {}
    made_by: Dict[Optional[places.Place], int] = {}

    def register(optimizer: Any, made_at: Optional[places.Place]) -> OptimizerRecord:
        watch.book()  # what was counted so far is not this one's
        watch.tally.grant(0, 0)
        watch.optimizers_seen += 1
        record = OptimizerRecord(f"o{watch.optimizers_seen}", optimizer, made_at, watch.parameters.number)
        made_by[made_at] = made_by.get(made_at, 0) + 1
        record.repeated = made_by[made_at] > FIRST_OF_A_LINE
        if record.repeated:
            record.sampling = record.deep = False
        key = id(optimizer)
        record.optimizer = weakref.ref(optimizer, probe.guard(lambda _: forget(key)))
        watch.optimizers[key] = record
        if not record.repeated:
            watch.wake()
        with watch.plainly():
            describe(record, optimizer)
        return record

    def forget(key: int) -> None:
        watch.book()
        record = watch.optimizers.pop(key, None)
        snapshots.pop(key, None)
        if record is not None and not record.repeated:
            watch.look_at_weights(record.windows)
        row = None if record is None else record.take()
        if row is not None:
            watch.facts.write("windows", **row)

    def describe(record: OptimizerRecord, optimizer: Any) -> None:
        groups = []
        for group in optimizer.param_groups[:64]:
            settings = {key: value for key, value in group.items() if isinstance(value, (int, float, bool, str, tuple))}
            rate = group.get("lr")
            if rate is not None and not isinstance(rate, (int, float)) and rate.device.type == "cpu":
                settings["lr"] = float(rate)
            groups.append({"settings": settings, "params": [watch.parameters.number(p) for p in group["params"]][:4000]})
        named = ((f"parameter {i} of group {g}", p) for g, group in enumerate(optimizer.param_groups[:64])
                 for i, p in enumerate(group["params"]))  # fmt: skip
        rows = watch.parameters.describe(named)
        for group in optimizer.param_groups[:64]:
            for parameter in group["params"][:4000]:
                watch.parameters.remember(parameter)
        watch.facts.write(
            "optimizer", id=record.name, kind=record.kind, at=record.made_at, by=places.right_above(), groups=groups, params=rows,
            windows=watch.windows, backwards=watch.backwards,
        )  # fmt: skip

    made = probe.guard(register)
    init = base.__init__

    @stands_for(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if probe.on and id(self) not in watch.optimizers:
            made(self, places.caller())

    base.__init__ = __init__
    watch_withheld_steps(watch, probe)

    @probe.guard
    def clearing(optimizer: Any) -> None:
        record = watch.record_of(optimizer)
        if record is not None:
            with watch.plainly():
                record.before_clearing(places.caller(2) if record.pending else None)

    zero_grad = base.zero_grad

    @stands_for(zero_grad)
    def zero_grad_watched(self: Any, *args: Any, **kwargs: Any) -> None:
        if not aside():
            clearing(self)
        zero_grad(self, *args, **kwargs)

    base.zero_grad = zero_grad_watched
    watch.stands_at_rest(base, "zero_grad", zero_grad)

    load = base.load_state_dict

    @stands_for(load)
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> None:
        load(self, *args, **kwargs)
        loaded(self)

    @probe.guard
    def loaded(optimizer: Any) -> None:
        record = watch.record_of(optimizer)
        if record is not None:
            steps = [state.get("step") for state in optimizer.state.values() if isinstance(state, dict)][:1]
            count = steps[0] if steps else None
            if count is not None and not isinstance(count, (int, float)):
                count = float(count) if count.device.type == "cpu" else None
            watch.facts.write(
                "optimizer_loaded", opt=record.name, at=places.caller(2), state_step=count, has_state=bool(optimizer.state), windows=record.windows,
                rates=[group.get("lr") for group in optimizer.param_groups[:8] if isinstance(group.get("lr"), (int, float))],
            )  # fmt: skip

    base.load_state_dict = load_state_dict

    @probe.guard
    def before(optimizer: Any) -> None:
        watch.beat.tick(STEP)
        record = watch.record_of(optimizer) or register(optimizer, None)
        with watch.plainly():
            record.before_step()
            if watch.precision is not None:
                watch.precision.before_step(record)
            if record.sampling and not watch.late.busy():
                began = time.perf_counter()
                snapshots[id(optimizer)] = Snapshot(watch, optimizer)
                record.cost = time.perf_counter() - began
        if record.step_at is None or record.windows < 3:
            record.step_at = places.caller(2)

    @probe.guard
    def after(optimizer: Any) -> None:
        record = watch.record_of(optimizer)
        if record is None:
            return
        with watch.plainly():
            record.after_step()
            snapshot = snapshots.pop(id(optimizer), None)
            if snapshot is not None:
                began = time.perf_counter()
                if not watch.late.busy():
                    snapshot.compare(record)
                    if watch.precision is not None:
                        watch.precision.after_look(record, optimizer)
                cost = record.cost + watch.loss_cost + time.perf_counter() - began
                watch.numbers.paid(cost, record.windows, watch.period.seconds)
                watch.loss_cost = 0.0
            watch.window_closed(record)

    @probe.guard
    def rested(optimizer: Any) -> None:
        record = watch.record_of(optimizer)
        if record is None:
            return
        if record.windows < record.upkeep_at:
            watch.attend_to_backward()
            record.attend_at = record.upkeep_at
        else:
            record.note_rates()
            watch.window_closed(record, counted=True)

    def counted(optimizer: Any) -> None:
        record = known.get(id(optimizer))
        if record is not None:
            watch.count(record)
            if record.windows >= record.attend_at:
                rested(optimizer)
            watch.count_thinly()

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not aside():
            before(optimizer)

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not aside():
            after(optimizer)

    hooks = importlib.import_module("torch.optim.optimizer")
    first = hooks.register_optimizer_step_pre_hook(before_step)
    last = hooks.register_optimizer_step_post_hook(after_step)
    watch.tally = Tally(probe.guard(counted))

    def rest_changes(resting: bool) -> None:  # a value is exchanged, never a key: torch may be walking through them
        first.hooks_dict_ref()[first.id] = NOTHING if resting else before_step
        last.hooks_dict_ref()[last.id] = watch.tally.hook if resting else after_step

    watch.when_rest_changes.append(rest_changes)
