"""Finds the reader for each path: folders are walked, globs opened up, `-` is standard input; what is left out is said, and why."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import cast

from trainsleuth.readers.kinds import Reader

READERS: tuple[str, ...] = (
    "tensorboard", "wandb_file", "wandb_log", "flight_recorder", "trainer_state", "mlflow_store", "lightning_csv", "keras_csv",
    "tracebacks", "yaml_config", "csv_table", "text",
)  # asked in this order; the first that recognises a file reads it  # fmt: skip
STANDARD_INPUT = "standard input"
HEAD = 65_536
MOST_FILES = 2_000
NEVER_ENTERED = (".git", "__pycache__", "node_modules", ".venv", "site-packages", ".trainsleuth")
NOT_A_LOG = (".py", ".pyc", ".so", ".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".npy", ".npz", ".pkl", ".pickle", ".zip", ".gz",
             ".png", ".jpg", ".jpeg", ".gif", ".mp4", ".wav", ".pdf", ".h5", ".hdf5", ".parquet", ".arrow", ".onnx", ".ipynb", ".md",
             ".html", ".sh", ".lock")  # fmt: skip


class NothingToRead(Exception):
    """What is wrong with the paths, in a sentence for the user."""


@dataclass(frozen=True)
class Source:
    """A file that a reader understands. Sources of one group are one run."""

    reader: Reader
    path: Path
    label: str
    group: str


@dataclass
class Choice:
    sources: list[Source] = field(default_factory=list)
    ignored: list[tuple[str, str]] = field(default_factory=list)  # path, why


def choose(paths: Sequence[str], readers: Sequence[str] = READERS) -> Choice:
    """The sources below these paths, in a steady order."""
    modules = [cast(Reader, import_module(f"trainsleuth.readers.{name}")) for name in readers]
    choice = Choice()
    known: set[Path] = set()
    for text in paths:
        for path, label, named in _files(text, choice):
            if path.resolve() in known:
                continue
            known.add(path.resolve())
            if len(known) > MOST_FILES:
                choice.ignored.append((text, f"only the first {MOST_FILES:,} files are read"))
                return choice
            _place(path, label, named, modules, choice)
    return choice


def _files(text: str, choice: Choice) -> Iterator[tuple[Path, str, bool]]:
    """Each file with its label, and whether the user named it himself."""
    if text == "-":
        yield _standard_input(), STANDARD_INPUT, True
        return
    path = Path(text)
    if path.is_dir():
        yield from ((found, str(found), False) for found in _walk(path, choice))
    elif path.exists():
        yield path, text, True
    elif glob.has_magic(text):
        matches = sorted(glob.glob(text, recursive=True))
        if not matches:
            raise NothingToRead(f"nothing matches {text}.")
        for match in matches:
            if Path(match).is_dir():
                yield from ((found, str(found), False) for found in _walk(Path(match), choice))
            else:
                yield Path(match), match, True
    else:
        raise NothingToRead(f"there is no file, folder or case {text}.")


def _walk(folder: Path, choice: Choice) -> Iterator[Path]:
    def unreadable(problem: OSError) -> None:
        choice.ignored.append((str(problem.filename), f"cannot be read: {problem.strerror}"))

    for parent, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if name not in NEVER_ENTERED)
        for name in sorted(files):
            yield Path(parent) / name


def _standard_input() -> Path:
    with tempfile.NamedTemporaryFile(prefix="trainsleuth-", suffix=".log", delete=False) as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
    return Path(spool.name)


def _place(path: Path, label: str, named: bool, readers: Iterable[Reader], choice: Choice) -> None:
    why = _not_readable(path, named)
    if why:
        choice.ignored.append((label, why))
        return
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as problem:
        choice.ignored.append((label, f"cannot be read: {problem.strerror}"))
        return
    if not head:
        choice.ignored.append((label, "is empty"))
        return
    for reader in readers:
        if reader.recognises(path, head):
            together = getattr(reader, "TOGETHER", False)
            choice.sources.append(Source(reader, path, label, str(path.parent) if together else label))
            return
    choice.ignored.append((label, "is in no format that we know"))


def _not_readable(path: Path, named: bool) -> str:
    if not path.is_file():
        return "is no regular file"
    if not named and path.suffix.lower() in NOT_A_LOG:
        return f"{path.suffix} files are no logs"
    return ""
