"""Keeps the files that a command line names: a digest of each, and a copy of the Python ones, to hold beside those of another run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

KEPT = (".py",)  # configurations may hold secrets: of those only the digest
COUNTED = (*KEPT, ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".sh")
MOST_BYTES = 1 << 20


def keep_sources(command: Sequence[str], cwd: Path, case: Path) -> dict[str, str]:
    """The digest of each file by the name that the command line has for it; what cannot be read is left out."""
    digests: dict[str, str] = {}
    for word in command:
        name = word.partition("=")[2] or word
        if not name.endswith(COUNTED):
            continue
        try:
            path = cwd / name
            if path.stat().st_size > MOST_BYTES:
                continue
            content = path.read_bytes()
            digests[name] = hashlib.sha256(content).hexdigest()
            if name.endswith(KEPT):
                (case / "sources").mkdir(exist_ok=True)
                (case / "sources" / path.name).write_bytes(content)
        except OSError:
            continue
    return digests
