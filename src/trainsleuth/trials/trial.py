"""One trial: a run of the program with chosen knobs in the sandbox, and its outcome."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import _trainsleuth_inside
from trainsleuth.case.entries import Place
from trainsleuth.case.folder import write_json
from trainsleuth.trials import sandbox

SOURCES = (".py", ".yaml", ".yml", ".toml", ".json", ".cfg", ".ini", ".sh")
MOST_FILES = 5000
OUR_REPORT = b'{\n "schema": 1,\n "case"'
WATCHING = 30  # per cent that watching may cost in a trial: facts count more than speed
Role = Literal["control", "knob", "placebo", "remedy"]
Kind = Literal["healthy", "stalled", "nan", "hang", "crash", "not applicable"]
FROM_OUTSIDE = ("command-line", "cold-cache")  # settings that have no actuator inside the program


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
    backwards: int = 0  # where the program may never step: the end comes after so many backwards at the latest
    hang_after: float = 0.0  # seconds without a sign of life after which it is looked at from outside; 0: it is not
    past: int = 0  # windows that the run had made when it stood still: a trial must get further
    gone: tuple[Path, ...] = ()  # weights that the run wrote itself: a trial starts without them
    loss_at: Place | None = None  # the line of the loss that counts; a program may train in several phases

    @property
    def key(self) -> str:
        changed = {str(path): hashlib.sha256(content).hexdigest() for path, content in self.files.items()}
        role = "run" if self.role in ("control", "knob", "placebo") else self.role
        about = [role, [asdict(setting) for setting in self.settings], self.windows, self.sources, changed, self.backwards,
                 self.hang_after, self.past, [str(path) for path in self.gone], self.loss_at and list(self.loss_at)]  # fmt: skip
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
    fired: Mapping[str, str] = field(default_factory=dict)  # the rules that see their fault in this trial, and at which line
    missing: tuple[str, ...] = ()  # the rules that could not judge it
    pace: float | None = None  # seconds a window
    cut: bool = False  # the time was over before it came to an end
    crash_kind: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)  # the last value of each metric that was logged or printed
    figures: Mapping[str, float] = field(default_factory=dict)  # the last value of what else is printed under a name that nobody knows
    scaler: str = ""  # what a gradient scaler did, in words
    weights: int = 0  # numbers that the model holds
    gradients: Mapping[str, float] = field(default_factory=dict)  # by parameter, the size of the first that was looked at
    not_finite: int = 0  # losses that were NaN or infinite, also where the training got over them


@dataclass(frozen=True)
class Known:
    """A trial that was run: its number, what it was, what came out."""

    id: str
    role: Role
    label: str
    key: str
    outcome: Outcome


def run(trial: Trial, command: Sequence[str], cwd: Path, environment: Mapping[str, str], folder: Path, seconds: float,
        *, unsafe: bool = False, cancel: threading.Event | None = None, memory: int = 0,
        own_network: bool = False) -> sandbox.Ended:  # fmt: skip
    """Run a trial to its end; its facts are in the folder."""
    words, told = changed_from_outside(trial, command, environment)
    told["TRAINSLEUTH_KNOBS"] = json.dumps(
        [{"knob": "every-window"}]
        + [{"knob": s.knob, "options": dict(s.options)} for s in trial.settings if s.knob not in FROM_OUTSIDE]
    )
    told["TRAINSLEUTH_STOP"] = json.dumps({"windows": trial.windows, "backwards": trial.backwards})
    if trial.hang_after:
        words = _watched(words, folder, trial.hang_after)
    else:
        told.update(_probes(folder, environment))
    gone = (*trial.gone, *_caches(trial, cwd))
    job = sandbox.Job(words, cwd, folder, seconds, told, trial.files, gone, memory, own_network)
    return sandbox.run(job, unsafe=unsafe, cancel=cancel)


def _caches(trial: Trial, cwd: Path) -> list[Path]:
    """The caches that this trial does not find."""
    paths = [cwd / path for setting in trial.settings if setting.knob == "cold-cache" for path in setting.options["paths"]]
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise sandbox.SandboxError(f"{missing[0]} is not there, so no trial can do without it; name the folder or file of the cache.")
    return paths


def facts_of(folder: Path) -> Path:
    """Where a trial has written its facts: a trial that was looked at from outside is a case of its own."""
    watched = folder / "watched" / "facts"
    return watched if watched.is_dir() else folder / "facts"


def changed_from_outside(trial: Trial, command: Sequence[str], environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command and the environment with what the settings change in them."""
    words, told = list(command), dict(environment)
    for setting in trial.settings:
        if setting.knob == "command-line":
            words = overridden(words, setting.options["words"])
        elif setting.knob == "environment":
            told.update({name: value for name, value in setting.options["values"].items() if value is not None})
    return words, told


def _probes(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    for part in ("facts", "beats"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    inject = Path(_trainsleuth_inside.__file__).resolve().parent / "inject"
    paths = [str(inject), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "TRAINSLEUTH_CASE": str(folder.resolve()),
        "TRAINSLEUTH_BEATS": str(folder.resolve() / "beats"),
        "TRAINSLEUTH_BUDGET": str(WATCHING / 100),
    }


def _watched(command: Sequence[str], folder: Path, hang_after: float) -> list[str]:
    """The same under `trainsleuth run` inside the sandbox: a standstill is seen, recorded with its stacks, and ended."""
    return [
        sys.executable, "-m", "trainsleuth", "run", "--quiet", "--no-live", "--budget", str(WATCHING), "--hang-after", f"{hang_after:g}",
        "--on-hang", "kill", "--case", str(folder.resolve() / "watched"), "--", *command,
    ]  # fmt: skip


def overridden(command: Sequence[str], words: Sequence[str]) -> list[str]:
    """A command with an override: in the place of what it overrides, or at its end."""
    changed = list(command)
    for word in words:
        key, joined, value = word.partition("=")
        if not joined:
            changed.append(word)
            continue
        at = next((n for n, old in enumerate(changed) if old == key or old.startswith(key + "=")), None)
        if at is None:
            changed.append(word)
        elif changed[at] == key and key.startswith("-") and at + 1 < len(changed):
            changed[at + 1] = value
        else:
            changed[at] = word
    return changed


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


def _is_a_report(path: Path) -> bool:
    """Whether one of our own commands wrote it with --json: no part of the program."""
    if path.suffix != ".json":
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(OUR_REPORT)) == OUR_REPORT
    except OSError:
        return False


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
    for path in sorted(path for path in paths if path.parent != folder or not _is_a_report(path)):
        try:
            about = path.stat()
            sums.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
        except OSError:
            sums.update(f"{path}\0?\n".encode())
    return sums.hexdigest()[:16]
