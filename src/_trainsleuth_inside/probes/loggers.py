"""Records the metrics that the program hands to its loggers: TensorBoard, W&B, MLflow, Lightning, Hugging Face."""

from __future__ import annotations

import math
import time
from typing import Any, Dict, List, Optional

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.import_hooks import after_import
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
        row = self._rows.setdefault(name, [0, 0.0, math.inf, -math.inf, math.nan])
        row[0] += 1
        row[4] = number
        if math.isfinite(number):
            row[1] += number
            row[2], row[3] = min(row[2], number), max(row[3], number)
        if count <= 64 or now - self._written.get(name, 0.0) >= max(0.5, (now - self._began) / 1000):
            self._written[name] = now
            del self._rows[name]
            self._watch.facts.write(
                "metric", name=name, n=row[0], mean=row[1] / row[0], least=row[2], most=row[3], last=row[4],
                step=step if isinstance(step, int) else None, at=at, windows=self._watch.windows,
            )  # fmt: skip


def install(watch: Watch, probe: Probe) -> None:
    log = MetricLog(watch)

    @probe.guard
    def note(reader: Any, args: Any, kwargs: Any) -> None:
        values, step = reader(args, kwargs)
        if values:
            at = places.caller(2)
            for name, value in list(values.items())[:MOST_NAMES]:
                log.add(name, value, step, at)

    def patch(module: Any, owner: str, method: str, reader: Any) -> None:
        cls = getattr(module, owner, None)
        original = getattr(cls, method, None)
        if original is None:
            return

        @stands_for(original)
        def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            note(reader, args, kwargs)
            return original(self, *args, **kwargs)

        setattr(cls, method, watched)

    def scalar(args: Any, kwargs: Any) -> Any:
        tag = args[0] if args else kwargs.get("tag")
        value = args[1] if len(args) > 1 else kwargs.get("scalar_value")
        return {tag: value}, args[2] if len(args) > 2 else kwargs.get("global_step")

    def mapping(args: Any, kwargs: Any) -> Any:
        values = args[0] if args else next((kwargs[key] for key in ("data", "metrics", "logs") if key in kwargs), None)
        return (values if isinstance(values, dict) else None), kwargs.get("step", args[1] if len(args) > 1 else None)

    for name, owner, method, reader in (
        ("torch.utils.tensorboard.writer", "SummaryWriter", "add_scalar", scalar),
        ("csv", "DictWriter", "writerow", mapping),
        ("wandb.sdk.wandb_run", "Run", "log", mapping),
        ("transformers.trainer", "Trainer", "log", mapping),
        ("lightning.pytorch.trainer.connectors.logger_connector.logger_connector", "_LoggerConnector", "log_metrics", mapping),
        ("pytorch_lightning.trainer.connectors.logger_connector.logger_connector", "_LoggerConnector", "log_metrics", mapping),
    ):
        after_import(name, probe.guard(lambda module, o=owner, m=method, r=reader: patch(module, o, m, r)))


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
