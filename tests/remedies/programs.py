"""Programs as source text, and findings about lines of them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainsleuth.remedies import propose
from trainsleuth.rules.kinds import Where


@dataclass
class Diagnosed:
    rule: str
    where: list[Where]
    evidence: list[str] = field(default_factory=list)


class Program:
    """A source file, and findings about lines of it."""

    def __init__(self, folder: Path, source: str, name: str = "train.py") -> None:
        self.path = folder / name
        self.path.write_text(textwrap.dedent(source).lstrip("\n"))

    def finding(self, rule: str, *texts: str, evidence: Sequence[str] = ()) -> Diagnosed:
        """A finding about the first line that contains each text; `text|note` gives the place a note."""
        where = []
        for text, _, note in (entry.partition("|") for entry in texts):
            number, line = next((n, line) for n, line in enumerate(self.path.read_text().splitlines(), 1) if text in line)
            where.append(Where(str(self.path), number, line.strip(), note))
        return Diagnosed(rule, where, list(evidence))

    def changes(self, rule: str, *texts: str, evidence: Sequence[str] = ()) -> tuple[list[str], list[str]]:
        """The lines that the patch takes out and puts in, without their indentation."""
        patch = propose(self.finding(rule, *texts, evidence=evidence))
        assert patch is not None
        assert patch.kind == "patch", patch.summary
        lines = patch.diff().splitlines()[2:]
        taken = [line[1:].strip() for line in lines if line.startswith("-")]
        return taken, [line[1:].strip() for line in lines if line.startswith("+")]
