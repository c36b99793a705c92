"""The loggers behind a StepLogger, each with its own idea of a step."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any, Protocol

Row = dict[str, float]
Counts = dict[str, int]
AXES = ("step", "epoch")


class Sink(Protocol):
    def write(self, axis: str, number: int, row: Row, counts: Counts) -> None:
        """One row at a number of an axis; `counts` is where all axes are."""

    def resume(self, counts: Counts) -> None:
        """The run goes on from these counts; what was written beyond them must not come twice."""

    def close(self) -> None: ...


class WandbSink:
    """W&B drops whatever has an older step than its own counter. So it is never given one: it counts calls, and what is drawn over what
    is said by `define_metric`. Other code may log to the same run as it likes."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._defined: set[str] = set()
        self._beyond: Counts = {}
        for axis in AXES:
            run.define_metric(f"axis/{axis}")

    def write(self, axis: str, number: int, row: Row, counts: Counts) -> None:
        if number < self._beyond.get(axis, 0):
            return
        for name in row:
            if name not in self._defined:
                self._defined.add(name)
                self._run.define_metric(name, step_metric=f"axis/{axis}")
        self._run.log({**row, f"axis/{axis}": number})

    def resume(self, counts: Counts) -> None:
        """A W&B run cannot forget. What it has already is not given again."""
        for axis in AXES:
            reached = self._run.summary.get(f"axis/{axis}")
            if isinstance(reached, (int, float)):
                self._beyond[axis] = int(reached) + 1

    def close(self) -> None:
        """The run is the user's to finish."""


class TensorBoardSink:
    """A folder, for which the writer is made when it is needed, or a writer that the user has made. TensorBoard knows one axis: there an
    epoch is drawn at the step with which it ended, so that a resume can purge both alike."""

    def __init__(self, where: Any) -> None:
        self._folder = where if isinstance(where, (str, os.PathLike)) else None
        self._writer: Any = None if self._folder is not None else where
        self._purge: int | None = None

    def write(self, axis: str, number: int, row: Row, counts: Counts) -> None:
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder), purge_step=self._purge)
        step = number if axis == "step" else max(0, counts["step"] - 1)
        for name, value in row.items():
            self._writer.add_scalar(name, value, step)

    def resume(self, counts: Counts) -> None:
        """A purge tells TensorBoard to forget what an earlier file holds from this step on."""
        self._purge = counts["step"]
        if self._writer is not None:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog

            start = Event(step=self._purge, session_log=SessionLog(status=SessionLog.START))
            self._writer.file_writer.add_event(start)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.flush()
        if self._folder is not None and self._writer is not None:
            self._writer.close()


class MlflowSink:
    """The active run, or one by its id."""

    def __init__(self, run: str | None) -> None:
        import mlflow

        self._client = mlflow.MlflowClient()
        active = mlflow.active_run()
        self._run = run or (active.info.run_id if active is not None else mlflow.start_run().info.run_id)
        self._beyond: dict[str, int] = {}

    def write(self, axis: str, number: int, row: Row, counts: Counts) -> None:
        import time

        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        wanted = [Metric(name, value, now, number) for name, value in row.items() if number > self._beyond.get(name, -1)]
        if wanted:
            self._client.log_batch(self._run, metrics=wanted)

    def resume(self, counts: Counts) -> None:
        """MLflow cannot forget a point. What it has already is not given again."""
        for name in self._client.get_run(self._run).data.metrics:
            steps = [metric.step for metric in self._client.get_metric_history(self._run, name)]
            self._beyond[name] = max(steps, default=-1)

    def close(self) -> None:
        """The run is the user's to end."""


class CsvSink:
    """A table with a column for each name; rows are appended, and the file is written anew only when a name is new or after a resume."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._names = _header(path) or [*AXES]
        self._file: Any = None

    def write(self, axis: str, number: int, row: Row, counts: Counts) -> None:
        new = [name for name in row if name not in self._names]
        if new:
            self._rewrite([*self._names, *new], None)
        if self._file is None:
            self._file = self._path.open("a", newline="", encoding="utf-8")
            if self._file.tell() == 0:
                csv.writer(self._file).writerow(self._names)
        place = {"step": max(0, counts["step"] - 1), "epoch": counts["epoch"], axis: number}
        cells: dict[str, Any] = {**place, **{name: repr(value) for name, value in row.items()}}
        csv.writer(self._file).writerow([cells.get(name, "") for name in self._names])
        self._file.flush()

    def resume(self, counts: Counts) -> None:
        if self._path.exists():
            self._rewrite(self._names, counts)

    def _rewrite(self, names: list[str], counts: Counts | None) -> None:
        """With these columns; without the rows beyond the counts, if they are given. In one move, so that nothing is lost by a crash."""
        self.close()
        self._names = names
        if not self._path.exists():
            return
        half = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with self._path.open(newline="", encoding="utf-8") as old, half.open("w", newline="", encoding="utf-8") as new:
            writer = csv.DictWriter(new, names, restval="", extrasaction="ignore")
            writer.writeheader()
            for row in csv.DictReader(old):
                if counts is None or _within(row, counts):
                    writer.writerow({name: value for name, value in row.items() if name is not None and value is not None})
        os.replace(half, self._path)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _header(path: Path) -> list[str]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return next(csv.reader(file), [])
    except FileNotFoundError:
        return []


def _within(row: dict[str, str], counts: Counts) -> bool:
    """Whether a row was written before the counts were reached."""
    try:
        return int(row["step"]) < counts["step"] and int(row["epoch"]) <= counts["epoch"]
    except (KeyError, TypeError, ValueError):
        return True
