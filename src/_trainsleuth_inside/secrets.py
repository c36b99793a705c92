"""Takes secrets out of a command line before it is written down."""

from __future__ import annotations

import re
from typing import List, Sequence

_NAMES = re.compile(r"(?i)(pass(word|wd)?|secret|token|api[-_]?key|access[-_]?key|credential|auth)")
_VALUES = re.compile(r"\b(sk-[A-Za-z0-9_-]{12,}|hf_[A-Za-z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{12,}|AKIA[0-9A-Z]{12,}|[0-9a-f]{40})\b")
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
        name, equals, value = word.partition("=")
        if _NAMES.search(name) and (name.startswith("-") or equals) and not name.endswith(".py"):
            if equals:
                clean.append(f"{name}={HIDDEN}")
                continue
            hide_next = True
        clean.append(_VALUES.sub(HIDDEN, word))
    return clean
