"""Records the learning-rate schedulers: which, built where, stepped when in relation to their optimizer."""

from __future__ import annotations

import weakref
from typing import Any, Dict

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    scheduler_base = torch.optim.lr_scheduler.LRScheduler
    names: Dict[int, str] = {}
    known: Dict[int, Any] = {}
    calls: Dict[int, int] = {}
    count = {"seen": 0}

    def patch(cls: Any) -> None:
        init, step = cls.__init__, cls.__dict__.get("step")

        @stands_for(init)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            made(self)

        cls.__init__ = __init__
        if step is not None:

            @stands_for(step)
            def step_watched(self: Any, *args: Any, **kwargs: Any) -> Any:
                stepping(self)
                return step(self, *args, **kwargs)

            cls.step = step_watched
        load = cls.__dict__.get("load_state_dict")
        if load is not None:

            @stands_for(load)
            def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
                result = load(self, *args, **kwargs)
                loaded(self)
                return result

            cls.load_state_dict = load_state_dict

    def is_known(scheduler: Any) -> bool:
        return id(scheduler) in known and known[id(scheduler)]() is scheduler

    @probe.guard
    def made(scheduler: Any) -> None:
        if is_known(scheduler):
            return
        known[id(scheduler)] = weakref.ref(scheduler)
        count["seen"] += 1
        names[id(scheduler)] = f"s{count['seen']}"
        calls[id(scheduler)] = 0
        record = watch.record_of(scheduler.optimizer)
        settings = {key: value for key, value in vars(scheduler).items()
                    if not key.startswith("_") and isinstance(value, (int, float, str, bool))}  # fmt: skip
        watch.facts.write(
            "scheduler", id=names[id(scheduler)], kind=type(scheduler).__name__, at=places.caller(2), via=places.around(2),
            opt=None if record is None else record.name, settings=settings,
            base=[rate for rate in getattr(scheduler, "base_lrs", []) if isinstance(rate, (int, float))][:8],
            after_windows=None if record is None else record.windows,
        )  # fmt: skip

    @probe.guard
    def stepping(scheduler: Any) -> None:
        if not is_known(scheduler):  # the step that the scheduler's own construction makes
            return
        name = names[id(scheduler)]
        calls[id(scheduler)] += 1
        n = calls[id(scheduler)]
        if n <= 8 or n & (n - 1) == 0:
            record = watch.record_of(scheduler.optimizer)
            steps = None if record is None else record.steps
            rates = [group.get("lr") for group in scheduler.optimizer.param_groups[:4]]
            watch.facts.write(
                "scheduler_step", id=name, n=n, steps=steps, at=places.caller(2),
                rates=[rate for rate in rates if isinstance(rate, (int, float))],
                pending=0 if record is None else len(record.pending),
            )  # fmt: skip

    @probe.guard
    def loaded(scheduler: Any) -> None:
        watch.facts.write("scheduler_loaded", id=names.get(id(scheduler)), at=places.caller(2))

    patch(scheduler_base)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
    if plateau.__dict__.get("step") is not None:
        patch(plateau)
