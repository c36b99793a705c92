"""What a command line asks for, as names and values: `--lr 0.1`, `--lr=0.1`, `lr=0.1` in Hydra's style, switches, positions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

HYDRA = re.compile(r"\+{0,2}([A-Za-z_][\w.\[\]/-]*)=(.*)")
NUMBER = re.compile(r"-\.?\d")


def options_of(command: Sequence[str]) -> dict[str, str]:
    """By name; the interpreter is left out, the script counts by its name."""
    words = list(command)
    if words and re.match(r"python[\d.]*$", Path(words[0]).name):
        words = words[1:]
    found: dict[str, str] = {}
    position = 0
    while words:
        word = words.pop(0)
        if word.startswith("-") and len(word) > 1 and not NUMBER.match(word):
            name, equals, value = word.partition("=")
            if not equals:
                follows = bool(words) and (not words[0].startswith("-") or bool(NUMBER.match(words[0])))
                value = words.pop(0) if follows and not _is_script(words[0]) else "on"
            found[name] = value
        elif (hydra := HYDRA.fullmatch(word)) is not None:
            found[hydra[1]] = hydra[2]
        else:
            position += 1
            found["program" if position == 1 else f"argument {position - 1}"] = Path(word).name if _is_script(word) else word
    return found


def _is_script(word: str) -> bool:
    return word.endswith(".py")


def is_seed(name: str) -> bool:
    return "seed" in name.lower()


def as_knob(name: str, value: str) -> str:
    """The `--knob` of `prove` that gives a run this value: `lr=--lr=0.01`, `lr=lr=0.01` for Hydra, `threads=OMP_NUM_THREADS=4`."""
    short = name.lstrip("-").rpartition(".")[2].replace("-", "_").lower()
    return f"{short}={name}={value}" if value != "on" else f"{short}={name}"
