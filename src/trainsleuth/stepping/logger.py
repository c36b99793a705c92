"""StepLogger: one object in front of all loggers, with one counter that only grows.

    log = StepLogger(wandb=run, tensorboard="runs/a", csv="runs/a/metrics.csv")
    for epoch in range(epochs):
        for batch in loader:
            ...
            log.step({"train/loss": loss})            # counts one step
        log.validation({"val/accuracy": accuracy})    # drawn over the steps, at the present one
        log.epoch({"train/epoch_loss": mean})         # counts one epoch; an axis of its own

Each name belongs to one axis (`step` or `epoch`), the one on which it was logged first. A value that is NaN or infinite is handed on
as it is, and a counter `not_finite/<name>` beside it makes it visible where pages draw nothing for NaN. With several ranks only
rank 0 writes; the others count. `state_dict` belongs into the checkpoint: after `load_state_dict` the counter goes on where the
checkpoint was made, and what was logged beyond that point is not logged twice.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from trainsleuth.stepping.sinks import CsvSink, MlflowSink, Sink, TensorBoardSink, WandbSink

STEP, EPOCH = "step", "epoch"


class StepLogger:
    def __init__(
        self, *, wandb: Any = None, tensorboard: Any = None, mlflow: Any = None, csv: str | Path | None = None, rank: int | None = None
    ) -> None:  # fmt: skip
        """`wandb` is a run, `tensorboard` a folder or a SummaryWriter, `mlflow` a run id or True for the active run, `csv` a path."""
        self._counts = {STEP: 0, EPOCH: 0}
        self._axes: dict[str, str] = {}
        self._not_finite: dict[str, int] = {}
        self._warned: set[str] = set()
        self._sinks: list[Sink] = []
        if (_rank() if rank is None else rank) == 0:
            if wandb is not None:
                self._sinks.append(WandbSink(wandb))
            if tensorboard is not None:
                self._sinks.append(TensorBoardSink(tensorboard))
            if mlflow is not None and mlflow is not False:
                self._sinks.append(MlflowSink(None if mlflow is True else str(mlflow)))
            if csv is not None:
                self._sinks.append(CsvSink(Path(csv)))

    @property
    def global_step(self) -> int:
        """Steps counted so far: the number that the next `step` logs with."""
        return self._counts[STEP]

    @property
    def current_epoch(self) -> int:
        return self._counts[EPOCH]

    def step(self, values: Mapping[str, Any] | None = None, *, at: int | None = None) -> int:
        """Log the values of one training step and count it. `at` may jump ahead, never back."""
        return self._count(STEP, values, at)

    def epoch(self, values: Mapping[str, Any] | None = None, *, at: int | None = None) -> int:
        """Log the values of one epoch over the epochs' own axis and count it."""
        return self._count(EPOCH, values, at)

    def validation(self, values: Mapping[str, Any]) -> None:
        """Log values that belong to the present step, without counting: validation, learning rates, timings."""
        self._write(STEP, max(0, self._counts[STEP] - 1), values)

    def _count(self, axis: str, values: Mapping[str, Any] | None, at: int | None) -> int:
        now = self._counts[axis]
        if at is not None and at < now:
            self._warn(f"{axis} {at} was asked for after {now - 1}; steps do not go back, so it is logged as {now}.")
        elif at is not None:
            now = at
        self._counts[axis] = now + 1
        if values:
            self._write(axis, now, values)
        return now

    def _write(self, axis: str, number: int, values: Mapping[str, Any]) -> None:
        row: dict[str, float] = {}
        for name, value in values.items():
            home = self._axes.setdefault(name, axis)
            if home != axis:
                self._warn(
                    f"{name} is drawn over {home} and was now logged by {axis}; give it another name there. It goes to {axis}/{name}."
                )
                name = f"{axis}/{name}"
            number_held = float(value)
            row[name] = number_held
            if not math.isfinite(number_held):
                self._not_finite[name] = self._not_finite.get(name, 0) + 1
            if name in self._not_finite:
                row[f"not_finite/{name}"] = float(self._not_finite[name])
        if row:
            for sink in self._sinks:
                sink.write(axis, number, row, dict(self._counts))

    def _warn(self, sentence: str) -> None:
        kind = sentence.partition(" was ")[0].split(" ")[0]
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(f"StepLogger: {sentence}", stacklevel=4)

    # -- resuming --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {"counts": dict(self._counts), "axes": dict(self._axes), "not_finite": dict(self._not_finite)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the checkpoint was made. Each logger forgets what lies beyond, or is not given it a second time."""
        self._counts = {STEP: int(state["counts"][STEP]), EPOCH: int(state["counts"][EPOCH])}
        self._axes = dict(state["axes"])
        self._not_finite = dict(state["not_finite"])
        for sink in self._sinks:
            sink.resume(dict(self._counts))

    # -- ending ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()

    def __enter__(self) -> StepLogger:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _rank() -> int:
    """The rank of this process: as torch.distributed knows it, else as the launcher says it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0
