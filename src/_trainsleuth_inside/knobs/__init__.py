"""The knobs: what a trial changes in the program from inside, one file each, and the limits it runs within."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any

from _trainsleuth_inside.guard import Probe


def set_from_environment(watch: Any) -> None:
    """Set the knobs that the supervisor of a trial asked for; each says in a fact what it did."""
    for setting in json.loads(os.environ.get("TRAINSLEUTH_KNOBS") or "[]"):
        module = importlib.import_module(f"_trainsleuth_inside.knobs.{setting['knob'].replace('-', '_')}")
        try:
            module.turn(watch, **setting.get("options", {}))
            watch.facts.write("knob", knob=setting["knob"], options=setting.get("options", {}))
        except Exception as problem:
            watch.facts.write("knob_failed", knob=setting["knob"], why=f"{type(problem).__name__}: {problem}")
    if os.environ.get("TRAINSLEUTH_STOP"):
        from _trainsleuth_inside.knobs import stop_after

        probe = Probe("stop", watch.facts)
        stop_after.turn(watch, probe, **json.loads(os.environ["TRAINSLEUTH_STOP"]))
