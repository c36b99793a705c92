"""A patch: the files that change, their new content, and the unified diff of both."""

from __future__ import annotations

import difflib
import io
import os
import shutil
import subprocess
import tempfile
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Patch:
    """What cures a finding: changed files, or changed variables; an `advice` has neither, because no sound rewrite exists."""

    kind: Literal["patch", "env", "advice"]
    summary: str
    files: Mapping[Path, bytes] = field(default_factory=dict)
    before: Mapping[Path, bytes] = field(default_factory=dict)
    environment: Mapping[str, str | None] = field(default_factory=dict)  # None: the variable is taken away
    lines: tuple[str, ...] = ()  # of an advice: where to look

    def diff(self, relative_to: Path | None = None) -> str:
        """The unified diff, as `patch -p1` and `git apply` take it."""
        return "".join(_diff(path, self.before[path], new, relative_to) for path, new in self.files.items())


class PatchError(Exception):
    """The patch cannot be applied; the message is for the user."""


def uncommitted(patch: Patch) -> list[Path]:
    """Files of the patch whose present content git does not have: changed, or not tracked. Without git there are none."""
    found = []
    for path in patch.files:
        asked = ["git", "-C", str(path.parent), "status", "--porcelain", "--ignored", "--", path.name]
        try:
            answer = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.SubprocessError):
            continue
        if answer.returncode == 0 and answer.stdout.strip():
            found.append(path)
    return found


def back_up(patch: Patch, folder: Path) -> Path:
    """Keep the files as they are in a fresh folder, under the names they have."""
    for number in range(1, 1000):
        kept = folder / f"B{number}"
        if not kept.exists():
            break
    common = Path(os.path.commonpath([path.parent for path in patch.files]))
    for path, content in patch.before.items():
        copy = kept / path.relative_to(common)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    return kept


def _diff(path: Path, old: bytes, new: bytes, relative_to: Path | None) -> str:
    name = path.as_posix().lstrip("/")
    if relative_to is not None and path.is_relative_to(relative_to):
        name = path.relative_to(relative_to).as_posix()
    lines = difflib.unified_diff(_lines(old), _lines(new), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(content: bytes) -> list[str]:
    encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
    return content.decode(encoding).splitlines(keepends=True)


def apply(patch: Patch) -> None:
    """Write the new files, each in one move, with the mode that the old one had; nothing if one of them changed meanwhile."""
    for path, old in patch.before.items():
        if path.read_bytes() != old:
            raise PatchError(f"{path} has changed since the patch was made; nothing was written.")
    for path, new in patch.files.items():
        target = path.resolve()
        handle, half = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(new)
            shutil.copymode(target, half)
            os.replace(half, target)
        except OSError as problem:
            Path(half).unlink(missing_ok=True)
            raise PatchError(f"{path} cannot be written: {problem.strerror}.") from problem
