"""Reads the facts of a case while they are being written: each file from where the last look ended, torn tails left for later."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Fact = dict[str, Any]
CHUNK = 1 << 20
_TAGS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def restored(value: Any) -> Any:
    """Numbers that are not finite, as they were before they were tagged for JSON."""
    if isinstance(value, dict):
        if len(value) == 1 and "~" in value:
            return _TAGS.get(value["~"], math.nan)
        return {key: restored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [restored(item) for item in value]
    return value


class FactFollower:
    """Follows all fact files of a folder; call `news` as often as you like."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[str, int] = {}
        self.unreadable = 0

    def news(self) -> Iterator[tuple[str, Fact]]:
        """New facts, each with the name of the process file that holds it."""
        try:
            files = sorted(self._folder.glob("*.jsonl"))
        except OSError:
            return
        for path in files:
            name = path.stem
            for fact in self._news_of(path):
                yield name, fact

    def _news_of(self, path: Path) -> Iterator[Fact]:
        offset = self._offsets.get(path.name, 0)
        try:
            if path.stat().st_size <= offset:
                return
            with path.open("rb") as file:
                file.seek(offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    offset += len(line)
                    fact = self._parse(line)
                    if fact is not None:
                        yield fact
        except OSError:
            self.unreadable += 1
        finally:
            self._offsets[path.name] = offset

    def _parse(self, line: bytes) -> Fact | None:
        try:
            fact = json.loads(line.decode("utf-8", "replace"))
            if isinstance(fact, dict) and isinstance(fact.get("k"), str):
                return {key: restored(value) for key, value in fact.items()} if b'"~"' in line else fact
        except (ValueError, RecursionError):
            pass
        self.unreadable += 1
        return None
