"""For Lightning: a logger around another that keeps steps from going back, and a W&B run that loses nothing when callbacks log to it.

    from trainsleuth.stepping.lightning import SteadyLogger
    trainer = Trainer(logger=SteadyLogger(WandbLogger(...)))

Lightning's WandbLogger lets W&B count and names `trainer/global_step` as the axis. A callback that calls `wandb.log(…, step=…)`
beside it is soon behind W&B's own counter, and W&B drops what it logs. Here such a call is taken over: its step becomes the axis.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from lightning.pytorch.loggers import Logger

AXIS = "trainer/global_step"


class SteadyLogger(Logger):  # type: ignore[misc, unused-ignore]
    """Hands everything on to another logger. When its steps start again (a second `fit`), they go on from where they were."""

    def __init__(self, logger: Logger) -> None:
        super().__init__()
        self._logger = logger
        self._highest: dict[str, int] = {}
        self._offset = 0
        self._taken_over = False

    @property
    def name(self) -> Any:
        return self._logger.name

    @property
    def version(self) -> Any:
        return self._logger.version

    @property
    def root_dir(self) -> Any:
        return self._logger.root_dir

    @property
    def log_dir(self) -> Any:
        return self._logger.log_dir

    @property
    def save_dir(self) -> Any:
        return self._logger.save_dir

    @property
    def experiment(self) -> Any:
        run = getattr(self._logger, "experiment", None)
        self._take_over(run)
        return run

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self._take_over(getattr(self._logger, "experiment", None))
        self._logger.log_metrics(metrics, None if step is None else self._steady(metrics, step))

    def _steady(self, metrics: dict[str, float], step: int) -> int:
        now = step + self._offset
        if any(now < self._highest.get(name, now) for name in metrics if name != "epoch"):
            self._offset += max(self._highest.values()) + 1 - now
            now = step + self._offset
        for name in metrics:
            self._highest[name] = now
        return now

    def _take_over(self, run: Any) -> None:
        if not self._taken_over and type(run).__module__.startswith("wandb."):
            self._taken_over = True
            give_up_steps(run)

    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        self._logger.log_hyperparams(params, *args, **kwargs)

    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        self._logger.after_save_checkpoint(checkpoint_callback)

    def save(self) -> None:
        self._logger.save()

    def finalize(self, status: str) -> None:
        self._logger.finalize(status)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._logger, name)


def give_up_steps(run: Any) -> None:
    """From now on `run.log` and `wandb.log` take a step as the value of the axis, and W&B only counts calls: nothing is ever too old."""
    log = run.log

    def steady(data: dict[str, Any], step: int | None = None, commit: bool | None = None) -> None:
        log(data if step is None else {**data, AXIS: int(step)}, commit=commit)

    run.define_metric(AXIS)
    run.define_metric("*", step_metric=AXIS, step_sync=True)
    run.log = steady
    library = sys.modules.get("wandb")
    if library is not None and getattr(library, "run", None) is run:
        library.log = steady  # type: ignore[attr-defined]
