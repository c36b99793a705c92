"""Records the metrics that the program hands to its loggers, and with which steps: TensorBoard, W&B, MLflow, Lightning, Hugging Face."""

from __future__ import annotations

import math
import time
from typing import Any, Dict, List, Optional

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.import_hooks import after_import
from _trainsleuth_inside.log_steps import LostByWandb, StepBook, Writers, as_step
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch

MOST_NAMES = 200
MOST_LENGTH = 120


class MetricLog:
    """The values of each metric, written at most so often that a day of logging stays small."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._rows: Dict[str, List[Any]] = {}
        self._written: Dict[str, float] = {}
        self._counts: Dict[str, int] = {}
        self._began = time.perf_counter()

    def add(self, name: Any, value: Any, step: Optional[int], at: Optional[places.Place]) -> None:
        number = _number(self._watch.torch, value)
        if number is None:
            return
        name = str(name)[:MOST_LENGTH]
        if name not in self._counts and len(self._counts) >= MOST_NAMES:
            return
        count = self._counts[name] = self._counts.get(name, 0) + 1
        now = time.perf_counter()
        row = self._rows.setdefault(name, [0, 0.0, math.inf, -math.inf, math.nan, 0])
        row[4] = number
        if math.isfinite(number):
            row[0] += 1
            row[1] += number
            row[2], row[3] = min(row[2], number), max(row[3], number)
        else:
            row[5] += 1
        if count <= 64 or now - self._written.get(name, 0.0) >= max(0.5, (now - self._began) / 1000):
            self._written[name] = now
            del self._rows[name]
            self._watch.facts.write(
                "metric", name=name, n=row[0], mean=row[1] / row[0] if row[0] else math.nan, least=row[2], most=row[3], last=row[4],
                not_finite=row[5], step=step if isinstance(step, int) else None, at=at, windows=self._watch.windows,
            )  # fmt: skip


def install(watch: Watch, probe: Probe) -> None:
    log = MetricLog(watch)
    steps = StepBook(watch.facts)
    lost = LostByWandb(watch.facts)
    writers = Writers(watch.facts)

    def add_all(values: Dict[Any, Any], step: Any, at: Optional[places.Place]) -> None:
        for name, value in list(values.items())[:MOST_NAMES]:
            log.add(name, value, step, at)

    def scalar(writer: Any, args: Any, kwargs: Any) -> None:
        tag = str(args[0] if args else kwargs.get("tag"))
        value = args[1] if len(args) > 1 else kwargs.get("scalar_value")
        step = args[2] if len(args) > 2 else kwargs.get("global_step")
        at = places.caller(3)
        log.add(tag, value, step, at)
        steps.point("TensorBoard", id(writer), tag, as_step(step), at)
        writers.wrote(writer, tag, at)

    def mapping(_: Any, args: Any, kwargs: Any) -> None:
        values = args[0] if args else next((kwargs[key] for key in ("data", "metrics", "logs") if key in kwargs), None)
        if isinstance(values, dict):
            add_all(values, kwargs.get("step", args[1] if len(args) > 1 else None), places.caller(3))

    def wandb(run: Any, args: Any, kwargs: Any) -> None:
        data = args[0] if args else kwargs.get("data")
        if isinstance(data, dict):
            step = args[1] if len(args) > 1 else kwargs.get("step")
            commit = args[2] if len(args) > 2 else kwargs.get("commit")
            at = places.caller(3)
            add_all(data, step, at)
            lost.logged(run, data, step, commit, at)

    def mlflow_metric(_: Any, args: Any, kwargs: Any) -> None:
        run, key, value, _time, step = (tuple(args) + (None,) * 5)[:5]
        key, value, step = kwargs.get("key", key), kwargs.get("value", value), kwargs.get("step", step)
        at = places.caller(3)
        log.add(key, value, step, at)
        if step is not None:
            steps.point("MLflow", kwargs.get("run_id", run), str(key), as_step(step), at)

    def mlflow_batch(_: Any, args: Any, kwargs: Any) -> None:
        run = args[0] if args else kwargs.get("run_id")
        at = places.caller(3)
        for metric in list((args[1] if len(args) > 1 else kwargs.get("metrics")) or ())[:MOST_NAMES]:
            log.add(metric.key, metric.value, metric.step, at)
            steps.point("MLflow", run, str(metric.key), as_step(metric.step), at)

    def hugging_face(trainer: Any, args: Any, kwargs: Any) -> None:
        mapping(trainer, args, kwargs)
        hides = getattr(getattr(trainer, "args", None), "logging_nan_inf_filter", None)
        if hides is not None:
            watch.facts.once("log_filter", "log_filter", on=bool(hides), at=places.caller(3))

    def made(writer: Any, args: Any, kwargs: Any) -> None:
        writers.made(writer, getattr(writer, "log_dir", "?"), places.caller(3))

    def closed(writer: Any, args: Any, kwargs: Any) -> None:
        writers.closed(writer)

    for name, owner, method, note, after in (
        ("torch.utils.tensorboard.writer", "SummaryWriter", "add_scalar", scalar, False),
        ("torch.utils.tensorboard.writer", "SummaryWriter", "__init__", made, True),
        ("torch.utils.tensorboard.writer", "SummaryWriter", "close", closed, False),
        ("csv", "DictWriter", "writerow", mapping, False),
        ("wandb.sdk.wandb_run", "Run", "log", wandb, False),
        ("mlflow.tracking.client", "MlflowClient", "log_metric", mlflow_metric, False),
        ("mlflow.tracking.client", "MlflowClient", "log_batch", mlflow_batch, False),
        ("transformers.trainer", "Trainer", "log", hugging_face, False),
        ("lightning.pytorch.trainer.connectors.logger_connector.logger_connector", "_LoggerConnector", "log_metrics", mapping, False),
        ("pytorch_lightning.trainer.connectors.logger_connector.logger_connector", "_LoggerConnector", "log_metrics", mapping, False),
    ):  # fmt: skip
        after_import(name, probe.guard(lambda module, o=owner, m=method, n=note, a=after: _patch(module, o, m, probe.guard(n), a)))


def _patch(module: Any, owner: str, method: str, note: Any, after: bool) -> None:
    """The method as it was, with `note` told of each call, before it or after it."""
    cls = getattr(module, owner, None)
    original = getattr(cls, method, None)
    if original is None:
        return

    if after:

        @stands_for(original)
        def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            given = original(self, *args, **kwargs)
            note(self, args, kwargs)
            return given

    else:

        @stands_for(original)
        def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            note(self, args, kwargs)
            return original(self, *args, **kwargs)

    setattr(cls, method, watched)


def _number(torch: Any, value: Any) -> Optional[float]:
    """A number that is there already; a tensor on a device is not read."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 and value.device.type == "cpu" else None
    try:
        return float(value) if type(value).__module__ == "numpy" else None
    except (TypeError, ValueError):
        return None
