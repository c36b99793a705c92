"""One trial: a run of the program with chosen knobs in the sandbox, and its outcome."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import _trainsleuth_inside
from trainsleuth.case.folder import write_json
from trainsleuth.trials import sandbox

SOURCES = (".py", ".yaml", ".yml", ".toml", ".json", ".cfg", ".ini", ".sh")
MOST_FILES = 5000
Role = Literal["control", "knob", "placebo", "remedy"]
Kind = Literal["healthy", "stalled", "nan", "hang", "crash", "not applicable"]


@dataclass(frozen=True)
class Setting:
    """One knob and how far it is turned."""

    knob: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """What is to be run; two trials with the same key would be the same run."""

    role: Role
    label: str
    settings: tuple[Setting, ...]
    windows: int
    sources: str  # digest of the program's files as this trial sees them
    files: Mapping[Path, bytes] = field(default_factory=dict)  # changed inside the sandbox only

    @property
    def key(self) -> str:
        changed = {str(path): hashlib.sha256(content).hexdigest() for path, content in self.files.items()}
        about = [self.role, [asdict(setting) for setting in self.settings], self.windows, self.sources, changed]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Learning:
    """A loss at both ends of a run, with the error that its own noise leaves in each."""

    first: float
    last: float
    first_error: float
    last_error: float
    steps: int  # backwards between the two ends

    @property
    def drop(self) -> float:
        return self.first - self.last

    @property
    def error(self) -> float:
        return float((self.first_error**2 + self.last_error**2) ** 0.5)


@dataclass(frozen=True)
class Outcome:
    """What a trial showed."""

    kind: Kind
    why: str = ""
    learning: Learning | None = None
    mechanism: Mapping[str, float] = field(default_factory=dict)
    windows: int = 0
    seconds: float = 0.0
    acted: bool = True  # the knob had something to change
    curve: tuple[tuple[int, float], ...] = ()  # backwards so far, mean loss


@dataclass(frozen=True)
class Known:
    """A trial that was run: its number, what it was, what came out."""

    id: str
    role: Role
    label: str
    key: str
    outcome: Outcome


def run(trial: Trial, command: Sequence[str], cwd: Path, environment: Mapping[str, str], folder: Path, seconds: float,
        *, unsafe: bool = False, cancel: threading.Event | None = None) -> sandbox.Ended:  # fmt: skip
    """Run a trial to its end; its facts are in the folder."""
    for part in ("facts", "beats"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    inject = Path(_trainsleuth_inside.__file__).resolve().parent / "inject"
    knobs = [{"knob": "every-window"}, *({"knob": s.knob, "options": dict(s.options)} for s in trial.settings)]
    paths = [str(inject), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    told = {
        **environment,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "TRAINSLEUTH_CASE": str(folder.resolve()),
        "TRAINSLEUTH_BEATS": str(folder.resolve() / "beats"),
        "TRAINSLEUTH_BUDGET": "0.05",
        "TRAINSLEUTH_KNOBS": json.dumps(knobs),
        "TRAINSLEUTH_STOP": json.dumps({"windows": trial.windows}),
    }
    job = sandbox.Job(command, cwd, folder, seconds, told, trial.files)
    return sandbox.run(job, unsafe=unsafe, cancel=cancel)


def save(folder: Path, known: Known) -> None:
    write_json(folder / f"{known.id}.json", {"schema": 1, **asdict(known)})


def load_all(folder: Path) -> list[Known]:
    """The trials that a case already has; what cannot be read is as if it had not been run."""
    found = []
    for path in folder.glob("T*.json"):
        try:
            found.append(_known(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return sorted(found, key=lambda known: int(known.id[1:]))


def _known(stored: dict[str, Any]) -> Known:
    about = dict(stored["outcome"])
    learning = about.pop("learning")
    curve = tuple((int(to), float(mean)) for to, mean in about.pop("curve"))
    outcome = Outcome(**about, learning=Learning(**learning) if learning else None, curve=curve)
    return Known(stored["id"], stored["role"], stored["label"], stored["key"], outcome)


def digest(folder: Path, case: Path, more: Sequence[Path] = ()) -> str:
    """Of the program's files: sources and configurations below a folder, by size and time of change; the case is none of them."""
    paths = set(more)
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in sandbox.NEVER_COPIED
                            and Path(top, name).resolve() != case)  # fmt: skip
        paths.update(Path(top, name) for name in names if name.endswith(SOURCES))
        if len(paths) > MOST_FILES:
            break
    sums = hashlib.sha256()
    for path in sorted(paths):
        try:
            about = path.stat()
            sums.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
        except OSError:
            sums.update(f"{path}\0?\n".encode())
    return sums.hexdigest()[:16]
