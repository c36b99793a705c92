"""What a trial shows beside its loss: the scores that the program logs or prints, and what its gradient scaler did."""

from __future__ import annotations

import math
from pathlib import Path

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.case.roles import role_of, split_of
from trainsleuth.readers import text

MOST_SCORES = 50


def scores(chart: ProcessChart, printed: Path) -> dict[str, float]:
    """The last value of each score, error and validation loss: as it was logged, and where nothing is logged as it was printed."""
    logged = {name: curve.last for name, curve in chart.metrics.items() if _tells(name) and math.isfinite(curve.last)}
    found = logged or {name: value for name, value in _printed(printed).items() if _tells(name)}
    return dict(list(found.items())[:MOST_SCORES])


def figures(printed: Path) -> dict[str, float]:
    """The last value of each other number that is printed under a name: it may be a score, and at least it can be compared."""
    found = {name: value for name, value in _printed(printed).items() if role_of(name) in ("other", "value", "reward") and math.isfinite(value)}
    return dict(list(found.items())[:MOST_SCORES])


def _tells(name: str) -> bool:
    role = role_of(name)
    return split_of(name) != "train" and (role in ("score", "error") or (role == "loss" and split_of(name) == "val"))


def _printed(path: Path) -> dict[str, float]:
    if not path.is_file() or not path.stat().st_size:
        return {}
    record = SourceRecord(str(path))
    for fact in text.read(path):
        record.absorb(fact)
    return {series.name: series.last for run in record.runs.values() for series in run.series.values() if series.count}


def scaler_words(chart: ProcessChart) -> str:
    """What the gradient scaler did, as it was seen; empty where there is none."""
    if not chart.scalers:
        return f"{len(chart.scalers_off)} scaler made, and switched off" if chart.scalers_off else ""
    optimizer = chart.main_optimizer()
    skipped = optimizer.skipped if optimizer is not None else 0
    scales = [scale for _, scale in chart.scales]
    course = f", its scale goes from {scales[0]:,.6g} to {scales[-1]:,.6g}" if scales else ", and scales no loss"
    return f"a scaler is at work{course}, {skipped} of {chart.windows} steps are skipped"
