"""The case folder on disk.

case.json        what was run, where, when, by which version; how it ended      (schema 1)
facts/*.jsonl    one file per process, written by the probes
beats/*.beat     one heartbeat page per process
report.json      the findings, in the schema of docs/json.md
trials/          one folder per trial, each a case of its own
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
CASES = Path(".trainsleuth") / "cases"


class CaseError(Exception):
    """What is wrong with a case folder, in a sentence for its user."""


@dataclass(frozen=True)
class Case:
    """One case folder and what its case.json says."""

    folder: Path
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def facts(self) -> Path:
        return self.folder / "facts"

    @property
    def beats(self) -> Path:
        return Path(self.about.get("beats") or self.folder / "beats")

    @property
    def trials(self) -> Path:
        return self.folder / "trials"

    @property
    def command(self) -> list[str]:
        return list(self.about.get("command", []))

    @property
    def cwd(self) -> Path:
        return Path(self.about.get("cwd", "."))

    def update(self, **changes: Any) -> Case:
        """Write case.json anew, in one move, so that a reader never sees half of it."""
        about = {**self.about, **changes}
        write_json(self.folder / "case.json", about)
        return Case(self.folder, about)


def write_json(path: Path, content: Any) -> None:
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(half, path)


def create_case(command: Sequence[str], cwd: Path, folder: Path | None = None, **about: Any) -> Case:
    """Make the folder for a new run. An existing folder is only taken when it is empty."""
    if folder is None:
        folder = _fresh_folder(cwd / CASES, command)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CaseError(f"{folder} is not empty: a case needs a folder of its own.")
    try:
        for part in ("facts", "beats"):
            (folder / part).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise CaseError(f"cannot write a case to {folder}: {problem.strerror}.") from problem
    folder = folder.resolve()
    if folder.parent.parent.name == ".trainsleuth":
        _keep_out_of_git(folder.parent.parent)
    return Case(folder).update(schema=SCHEMA, command=list(command), cwd=str(cwd.resolve()), started=time.time(), **about)


def _fresh_folder(parent: Path, command: Sequence[str]) -> Path:
    script = next((word for word in command if word.endswith(".py")), command[0] if command else "run")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(script).stem)[:40] or "run"
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for attempt in range(1000):
        folder = parent / (f"{stamp}-{name}" if attempt == 0 else f"{stamp}-{name}-{attempt}")
        try:
            folder.mkdir(parents=True, exist_ok=False)
        except FileExistsError:
            continue
        except OSError as problem:
            raise CaseError(f"cannot write a case to {parent}: {problem.strerror}. Name another place with --case.") from problem
        return folder
    raise CaseError(f"cannot find a free name for a case in {parent}.")


def _keep_out_of_git(folder: Path) -> None:
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def open_case(path: str | Path, cwd: Path | None = None) -> Case:
    """Open a case by its folder, by the end of its name, or `last`."""
    folder = _find(str(path), cwd or Path.cwd())
    try:
        about = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CaseError(f"{folder} is no case folder: it has no case.json.") from None
    except (OSError, ValueError) as problem:
        raise CaseError(f"{folder / 'case.json'} cannot be read: {problem}.") from None
    if not isinstance(about, dict) or not isinstance(about.get("schema"), int):
        raise CaseError(f"{folder / 'case.json'} is not a description of a case.")
    if about["schema"] > SCHEMA:
        raise CaseError(
            f"{folder} was written by a newer TrainSleuth (schema {about['schema']}, this one reads up to {SCHEMA}). Please upgrade."
        )
    return Case(folder.resolve(), about)


def _find(text: str, cwd: Path) -> Path:
    direct = Path(text)
    if direct.is_dir():
        return direct
    if direct.exists():
        raise CaseError(f"{text} is a file, not a case folder.")
    known = list_cases(cwd)
    if text == "last" and known:
        return known[-1]
    matches = [folder for folder in known if folder.name.endswith(text) or folder.name.startswith(text)]
    if len(matches) == 1:
        return matches[0]
    if len(matches) > 1:
        raise CaseError(f"{text} could be any of {', '.join(folder.name for folder in matches[:4])}: say more of its name.")
    raise CaseError(f"there is no case {text} here (looked in {CASES}).")


def list_cases(cwd: Path) -> list[Path]:
    """The case folders below a working directory, oldest first."""
    parent = cwd / CASES
    if not parent.is_dir():
        return []
    return sorted((folder for folder in parent.iterdir() if (folder / "case.json").is_file()), key=lambda folder: folder.name)
