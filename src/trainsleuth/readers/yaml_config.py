"""Configurations in YAML: Hydra's `.hydra/config.yaml` and `overrides.yaml`, Lightning's `hparams.yaml`, any other with settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainsleuth.readers.kinds import Fact, skipped
from trainsleuth.readers.rows import lines_of
from trainsleuth.readers.yaml_subset import read_settings

NAME = "YAML configuration"
MOST_LINES = 50_000
_OVERRIDE = re.compile(r"\+{0,2}(?P<name>[\w./@-]+)=(?P<value>.*)")


def recognises(path: Path, head: bytes) -> bool:
    return path.suffix in (".yaml", ".yml") and b"\0" not in head


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    yield from settings(path)


def settings(path: Path) -> Iterator[Fact]:
    """Each scalar with its dotted name; Hydra's overrides are settings, too."""
    try:
        with_end = (line for number, line in enumerate(lines_of(path)) if number < MOST_LINES)
        found = read_settings(with_end)
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)
        return
    for name, value in found.settings.items():
        override = _OVERRIDE.fullmatch(value) if name.isdigit() and isinstance(value, str) else None
        if override is not None:
            yield {"k": "setting", "name": override["name"], "value": override["value"]}
        else:
            yield {"k": "setting", "name": name, "value": value}
    if found.not_understood:
        yield skipped("line of YAML that is not understood", found.not_understood, found.first_not_understood)
