"""Records the steps that Accelerate withholds: it lets an optimizer step only at micro-batches that complete an accumulation."""

from __future__ import annotations

from typing import Any, Dict, List

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.import_hooks import after_import
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch

FIRST = 16  # steps that were asked for; told then, and whenever their number has doubled


def watch_withheld_steps(watch: Watch, probe: Probe) -> None:
    aside = watch.aside
    completed = [0]  # accumulations
    counts: Dict[str, List[int]] = {}  # by optimizer: steps asked for, steps withheld

    @probe.guard
    def asked(wrapper: Any) -> None:
        record = watch.record_of(wrapper)
        if record is None:
            return
        count = counts.setdefault(record.name, [0, 0])
        count[0] += 1
        count[1] += not wrapper.gradient_state.sync_gradients
        if count[0] >= FIRST and count[0] & (count[0] - 1) == 0:
            watch.facts.write(
                "steps_withheld", opt=record.name, at=places.caller(2), asked=count[0], withheld=count[1], completed=completed[0],
                accumulates=int(wrapper.gradient_state.num_steps), backwards=watch.backwards,
            )  # fmt: skip

    def loaded(module: Any) -> None:
        wrapper, state = module.AcceleratedOptimizer, module.GradientState
        step, switch = wrapper.step, state._set_sync_gradients

        @stands_for(step)
        def step_watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not aside():
                asked(self)
            return step(self, *args, **kwargs)

        @stands_for(switch)
        def switch_watched(self: Any, sync: Any, *args: Any, **kwargs: Any) -> Any:
            completed[0] += bool(sync)
            return switch(self, sync, *args, **kwargs)

        wrapper.step, state._set_sync_gradients = step_watched, switch_watched

    after_import("accelerate.optimizer", probe.guard(loaded))
