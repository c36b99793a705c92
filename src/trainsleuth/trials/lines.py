"""Where a line of rewritten files stands in the files as they are."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path

from trainsleuth.case.entries import Place


def as_it_is(files: Mapping[Path, bytes], at: Place) -> Place:
    """The same line of the file that a trial found rewritten; one that is new there stays as it is counted."""
    new = next((content for path, content in files.items() if str(path) == at.file), None)
    if new is None:
        return at
    try:
        old = Path(at.file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return at
    index = at.line - 1
    for kind, first, last, new_first, new_last in SequenceMatcher(None, old, new.decode(errors="replace").splitlines(), False).get_opcodes():
        if new_first <= index < new_last and kind in ("equal", "replace"):
            return at._replace(line=first + min(index - new_first, last - first - 1) + 1)
    return at
