"""One model: a module that the program calls itself, not from inside another module's forward."""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, Optional, Tuple

from _trainsleuth_inside.places import Place

Setting = Tuple[bool, bool, Optional[str]]  # train mode, gradients on, loader of the batch


class ModelRecord:
    def __init__(self, name: str, module: Any) -> None:
        self.name = name
        self.kind = type(module).__name__
        self.module = weakref.ref(module)
        self.plain: List[Any] = []  # parameters in plain lists, dicts and attributes
        self._compared_at = 0
        self.list_parts(module)
        self.modes_said: Dict[Tuple[bool, bool], Tuple[Any, ...]] = {}
        self.norms_as_built: Optional[List[str]] = None  # as said last
        self.norms_looked_at = 0  # windows that had been made then
        self._calls: Dict[Setting, int] = {}
        self._trained_in: Optional[Setting] = None  # setting of the present window's last call with gradients
        self._called_in: Optional[Setting] = None  # and of its last one without
        self._windows: Dict[Setting, int] = {}
        self._places: Dict[Setting, Optional[Place]] = {}

    def list_parts(self, module: Any) -> None:
        """What it is made of, now: a head may be replaced after it was called."""
        self.paths: Dict[int, str] = {id(child): path for path, child in module.named_modules()}
        self.sensitive: List[Tuple[str, Any]] = [
            (path, weakref.ref(child)) for path, child in module.named_modules() if sensitive_to_mode(child)
        ]
        self.parameter_count = sum(1 for _ in module.parameters())
        self._identity = sum(map(id, module.parameters()))

    def was_rebuilt(self, module: Any, moment: int) -> bool:
        """Whether its parameters are others than they were; looked at once on each occasion, however often it is called."""
        if self._compared_at == moment:
            return False
        self._compared_at = moment
        return sum(map(id, module.parameters())) != self._identity

    def describe_plain(self, watch: Any, hidden: Any) -> List[List[Any]]:
        """Remember the parameters that torch does not see, so that they are looked at too; rows for the fact."""
        rows: List[List[Any]] = []
        for path, kind, at, parameters in hidden:
            self.plain.extend(weakref.ref(parameter) for parameter in parameters)
            for parameter in parameters:
                watch.parameters.remember(parameter)
            rows.append([path, kind, sum(p.numel() for p in parameters), at, [watch.parameters.number(p) for p in parameters]])
        return rows

    def count(self, setting: Setting) -> bool:
        """Count one call; True when a call in this setting was never seen before."""
        calls = self._calls.get(setting)
        self._calls[setting] = 1 if calls is None else calls + 1
        if setting[1]:
            self._trained_in = setting
        else:
            self._called_in = setting
        return setting not in self._places

    def close_window(self) -> None:
        for setting in (self._trained_in, self._called_in):
            if setting is not None:
                self._windows[setting] = self._windows.get(setting, 0) + 1
        self._trained_in = self._called_in = None

    def place(self, setting: Setting, at: Optional[Place]) -> None:
        self._places[setting] = at

    def take(self) -> List[Dict[str, Any]]:
        rows = [
            {"model": self.name, "training": setting[0], "grad": setting[1], "loader": setting[2], "n": self._calls.get(setting, 0),
             "windows": self._windows.get(setting, 0), "at": self._places.get(setting)}
            for setting in {**self._calls, **self._windows}
        ]  # fmt: skip
        self._calls, self._windows = {}, {}
        return rows


def sensitive_to_mode(module: Any) -> bool:
    """Whether train and eval differ for this very module: an active Dropout, a norm layer that keeps running statistics."""
    kind = type(module).__name__
    if "Dropout" in kind or kind == "DropPath":
        return bool(getattr(module, "p", getattr(module, "drop_prob", 0)))
    if "BatchNorm" in kind or "InstanceNorm" in kind:
        return bool(getattr(module, "track_running_stats", False))
    return bool(isinstance(getattr(module, "dropout", None), float) and module.dropout > 0)
