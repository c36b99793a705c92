"""Runs a callback right after a named module has been imported, without importing it ourselves."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence

Callback = Callable[[Any], None]
_waiting: Dict[str, List[Callback]] = {}


def after_import(name: str, callback: Callback) -> None:
    """The callback must be guarded (see guard.Probe): what it raises would come out of the program's own import."""
    if name in sys.modules:
        callback(sys.modules[name])
        return
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _waiting.setdefault(name, []).append(callback)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Any = None) -> Any:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    _call_back_after(spec.loader, name)
                return spec
        return None


def _call_back_after(loader: Any, name: str) -> None:
    """Shadow the loader's exec_module on this one instance: the loader itself stays the one that Python chose."""
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        try:
            del loader.exec_module
        except AttributeError:
            pass
        execute(module)
        for callback in _waiting.pop(name, []):
            callback(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:  # a loader without a __dict__: such modules are simply not watched
        _waiting.pop(name, None)
