"""The knobs: what a trial changes in the program from inside, one file each, and the limits it runs within.

A knob's file has `turn(watch, …)`, called when torch has been imported, or `begin(facts, …)`, called before the program's first
line, or both.
"""

from __future__ import annotations

import importlib
import json
import os
from typing import Any

from _trainsleuth_inside.guard import Probe


def set_at_the_start(facts: Any) -> None:
    """Set the knobs that must be there before the program does anything."""
    if os.environ.get("TRAINSLEUTH_KNOBS"):
        _set("begin", facts, facts)


def set_from_environment(watch: Any) -> None:
    """Set the knobs that the supervisor of a trial asked for; each says in a fact what it did."""
    _set("turn", watch, watch.facts)
    if os.environ.get("TRAINSLEUTH_STOP"):
        from _trainsleuth_inside.knobs import stop_after

        probe = Probe("stop", watch.facts)
        stop_after.turn(watch, probe, **json.loads(os.environ["TRAINSLEUTH_STOP"]))


def _set(moment: str, given: Any, facts: Any) -> None:
    for setting in json.loads(os.environ.get("TRAINSLEUTH_KNOBS") or "[]"):
        name, options = setting["knob"], setting.get("options", {})
        try:
            module = importlib.import_module(f"_trainsleuth_inside.knobs.{name.replace('-', '_')}")
            work = getattr(module, moment, None)
            if work is not None:
                work(given, **options)
                facts.write("knob", knob=name, options=options)
        except Exception as problem:
            facts.write("knob_failed", knob=name, why=f"{type(problem).__name__}: {problem}")

