"""Knob `one-counter`: the points of a name are numbered by a counter that only grows.

Changes        TensorBoard and MLflow get the next step where one comes that is not higher; W&B counts by itself, whatever step it is given
Mechanism      steps that go back, and points that are lost by that
Not applicable when no logger is given a step, or all steps rise
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Tuple

from _trainsleuth_inside.import_hooks import after_import
from _trainsleuth_inside.knobs.acting import says
from _trainsleuth_inside.log_steps import as_step

Given = Tuple[Tuple[Any, ...], Dict[str, Any]]


def turn(watch: Any) -> None:
    acted = says(watch, "one-counter")
    highest: Dict[Tuple[Any, str], int] = {}

    def rising(target: Any, name: Any, step: Any) -> Any:
        given = as_step(step)
        if given is None:
            return step
        before = highest.get((target, str(name)))
        if before is not None and given < before:
            acted(name=str(name)[:120], step=given)
            given = before + 1
        highest[(target, str(name))] = given
        return given

    def tensorboard(writer: Any, args: Any, kwargs: Any) -> Given:
        tag = args[0] if args else kwargs.get("tag")
        return _with(args, kwargs, 2, "global_step", lambda step: rising(id(writer), tag, step))

    def mlflow(_: Any, args: Any, kwargs: Any) -> Given:
        run, key = kwargs.get("run_id", args[0] if args else None), kwargs.get("key", args[1] if len(args) > 1 else None)
        return _with(args, kwargs, 4, "step", lambda step: rising(run, key, step))

    def wandb(_: Any, args: Any, kwargs: Any) -> Given:
        def without(step: Any) -> Any:
            if step is not None:
                acted(step=as_step(step))

        return _with(args, kwargs, 1, "step", without)

    for name, owner, method, change in (
        ("torch.utils.tensorboard.writer", "SummaryWriter", "add_scalar", tensorboard),
        ("mlflow.tracking.client", "MlflowClient", "log_metric", mlflow),
        ("wandb.sdk.wandb_run", "Run", "log", wandb),
    ):
        after_import(name, functools.partial(_put, owner=owner, method=method, change=change))


def _put(module: Any, owner: str, method: str, change: Callable[[Any, Any, Any], Given]) -> None:
    cls = getattr(module, owner)
    original = getattr(cls, method)

    @functools.wraps(original)
    def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = change(self, args, kwargs)
        return original(self, *args, **kwargs)

    setattr(cls, method, changed)


def _with(args: Tuple[Any, ...], kwargs: Dict[str, Any], position: int, keyword: str, change: Callable[[Any], Any]) -> Given:
    """The arguments of a call with the step changed, wherever it was given."""
    if len(args) > position:
        return (*args[:position], change(args[position]), *args[position + 1 :]), kwargs
    return args, {**kwargs, keyword: change(kwargs[keyword])} if keyword in kwargs else kwargs
