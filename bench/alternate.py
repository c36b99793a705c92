"""Alternates bare and watched steps in one process that has the probes loaded; prints the times of both as JSON.

    python bench/alternate.py WORKLOAD SECONDS watched|control|anomaly|torchmortem

Needs the probes' environment (bench/overhead.py gives it). The probes are switched by swapping every attribute that they patched
for the original and back. After a switch one step goes untimed, because Python has to find its methods anew.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from workloads import STEPS_AT_A_TIME, Workload, workload

NOT_IN_A_STEP = ("__init__", "load_state_dict", "train", "compile", "manual_seed", "load")  # left in place: no step runs them
WARM_UP = {"mlp": 4200, "cnn": 1600, "transformer": 1600}  # until what the first windows may cost is spent


class Switch:
    """What the probes changed in torch, found by comparing torch before and after they were installed."""

    def __init__(self) -> None:
        from _trainsleuth_inside import arrival

        self.watch: Any = None
        self._patches: list[tuple[Any, str, Any, Any]] = []
        self._hooks: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
        self._paused = 0.0
        install, make = arrival.torch_imported, arrival.Watch

        def remembering(*args: Any) -> Any:
            self.watch = make(*args)
            return self.watch

        def torch_imported(torch: Any, *rest: Any) -> None:
            owners = _owners(torch)
            before = [dict(vars(owner)) for owner in owners]
            install(torch, *rest)
            for owner, known in zip(owners, before):
                self._patches += [
                    (owner, name, known[name], value)
                    for name, value in dict(vars(owner)).items()
                    if name in known and known[name] is not value and callable(value) and name not in NOT_IN_A_STEP
                ]
            optimizer = sys.modules["torch.optim.optimizer"]
            for hooks in (optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks):
                self._hooks.append((hooks, dict(hooks)))

        arrival.Watch, arrival.torch_imported = remembering, torch_imported

    def names(self) -> list[str]:
        return [f"{getattr(owner, '__name__', owner)}.{name}" for owner, name, _, _ in self._patches]

    def off(self) -> None:
        for index, (owner, name, original, _) in enumerate(self._patches):
            present = vars(owner)[name]  # at rest the probes take some of their patches back themselves
            self._patches[index] = (owner, name, original, present)
            if present is not original:
                setattr(owner, name, original)
        for index, (hooks, _) in enumerate(self._hooks):
            self._hooks[index] = (hooks, dict(hooks))  # at rest others stand there than when they were installed
            hooks.clear()
        self._paused = time.perf_counter()

    def on(self) -> None:
        for owner, name, original, present in self._patches:
            if present is not original:
                setattr(owner, name, present)
        for hooks, ours in self._hooks:
            hooks.update(ours)
        if self._paused:
            self._leave_out(time.perf_counter() - self._paused)
            self._paused = 0.0

    def _leave_out(self, pause: float) -> None:
        """Bare steps must not count as time in which watching may be paid for."""
        watch = self.watch
        watch.period._last += pause
        watch._began += pause
        watch._first_backward += pause
        watch._flushed += pause
        watch._woke += pause
        for share in (watch.numbers, watch.depth):
            share._began += pause


def _owners(torch: Any) -> list[Any]:
    import torch.nn.functional
    import torch.optim.lr_scheduler
    import torch.utils.data

    data = torch.utils.data
    owners = [torch, torch.autograd, torch.nn.functional, torch.nn.Module, torch.nn.Parameter, torch.Tensor, torch.no_grad,
              torch.optim.Optimizer, data.DataLoader, data.dataloader._BaseDataLoaderIter, torch.amp.GradScaler]  # fmt: skip
    owners += [each for each in vars(torch.optim.lr_scheduler).values() if isinstance(each, type)]
    return list({id(owner): owner for owner in owners}.values())


def _torchmortem(step: Workload) -> tuple[Callable[[], object], Callable[[], object], Callable[[], object]]:
    """The always-on monitor torchmortem, as its README says to use it; its hooks are put on and taken off around its steps."""
    from torchmortem import Autopsy

    present: list[Any] = []

    def turn_on() -> None:
        present[:] = [Autopsy(step.model, optimizer=step.optimizer).__enter__()]

    def turn_off() -> None:
        present[0].__exit__(None, None, None)

    def watched_step() -> None:
        present[0].step(loss=step().item())

    return turn_on, turn_off, watched_step


def main() -> None:
    name, seconds, what = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    kind = name.split(":")[0]
    switch = Switch()
    import torch

    if switch.watch is None:
        raise SystemExit("the probes are not loaded: start this through bench/overhead.py")
    torch.set_num_threads(1)
    step = workload(name)
    for _ in range(WARM_UP[kind]):
        step()  # what the first windows cost shows in whole runs
    switch.off()
    anomaly = torch.autograd.set_detect_anomaly

    def nothing() -> None:
        pass

    turn_on: Callable[[], object]
    turn_off: Callable[[], object]
    watched_step: Callable[[], object] = step
    if what == "watched":
        turn_on, turn_off = switch.on, switch.off
    elif what == "anomaly":
        turn_on, turn_off = lambda: anomaly(True, check_nan=True), lambda: anomaly(False)
    elif what == "torchmortem":
        turn_on, turn_off, watched_step = _torchmortem(step)
    else:
        turn_on = turn_off = nothing
    count = int(sys.argv[4]) if len(sys.argv) > 4 else STEPS_AT_A_TIME[kind]
    bare: list[float] = []
    watched: list[float] = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        first_bare = len(bare) % 2 == 0
        for side in (bare, watched) if first_bare else (watched, bare):
            if side is watched:
                turn_on()
            take = watched_step if side is watched else step
            take()
            began = time.thread_time()
            for _ in range(count - 1):
                take()
            side.append((time.thread_time() - began) / (count - 1))
            if side is watched:
                turn_off()
    json.dump({"bare": bare, "watched": watched, "switched": switch.names() if what == "watched" else []}, sys.stdout)


if __name__ == "__main__":
    main()
