"""Takes secrets out of a command line before it is written down."""

from __future__ import annotations

import re
from typing import List, Sequence

_NAMES = re.compile(
    r"(?i)(?:^|[-_.])(?:pass(?:word|wd|phrase)?|pwd|secrets?|token|credentials?|auth|(?:api|access|secret|private)[-_]?key)+(?:$|[-_.])"
)
_VALUES = re.compile(r"\b(sk-[A-Za-z0-9_-]{12,}|hf_[A-Za-z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{12,}|AKIA[0-9A-Z]{12,}|[0-9a-f]{40})\b")
_IN_ADDRESS = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
HIDDEN = "***"


def without_secrets(words: Sequence[str]) -> List[str]:
    """The words with the values of secret-looking options and secret-looking values hidden."""
    clean: List[str] = []
    hide_next = False
    for word in words:
        if hide_next and not word.startswith("-"):
            clean.append(HIDDEN)
            hide_next = False
            continue
        hide_next = False
        name, equals, _ = word.partition("=")
        if _sounds_secret(name) and (name.startswith("-") or equals):
            if equals:
                clean.append(f"{name}={HIDDEN}")
                continue
            hide_next = True
        clean.append(_IN_ADDRESS.sub(rf"\1{HIDDEN}@", _VALUES.sub(HIDDEN, word)))
    return clean


def _sounds_secret(name: str) -> bool:
    return not name.endswith(".py") and _NAMES.search(_HUMP.sub("_", name)) is not None
