"""What a remedy works with: the finding, and the files that it opens, each parsed once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import libcst as cst

from trainsleuth.remedies.patch import Patch
from trainsleuth.remedies.source import NotPossible, Source, read
from trainsleuth.trials.knobs import Pointed

NO_LINE = "the finding names no line of your own files that this could change"


class Diagnosed(Protocol):
    """A finding, as far as a remedy must know it."""

    @property
    def rule(self) -> str: ...
    @property
    def where(self) -> Sequence[Pointed]: ...
    @property
    def evidence(self) -> Sequence[str]: ...


class Desk:
    """The files that are open while a remedy works."""

    def __init__(self) -> None:
        self._open: dict[Path, Source] = {}

    def source(self, file: str) -> Source:
        path = Path(file).resolve()
        if path not in self._open:
            self._open[path] = read(path)
        return self._open[path]

    def sources(self, finding: Diagnosed) -> Iterator[Source]:
        """The user's own files that the finding points at."""
        for file in dict.fromkeys(place.file for place in finding.where):
            try:
                yield self.source(file)
            except NotPossible:
                continue

    def sources_and_imports(self, finding: Diagnosed) -> Iterator[Source]:
        """The same, and the user's own modules that they import."""
        own = list(self.sources(finding))
        yield from own
        for path in dict.fromkeys(path for source in own for path in _imported_files(source)):
            try:
                yield self.source(str(path))
            except NotPossible:
                continue

    def lines(self, finding: Diagnosed, code: str = "", note: str = "") -> Iterator[tuple[Source, int]]:
        """The lines of the finding whose code and note match these patterns, in the user's own files."""
        for place in finding.where:
            if re.search(code, place.code) and re.search(note, place.note):
                try:
                    yield self.source(place.file), place.line
                except NotPossible:
                    continue

    def afresh(self) -> None:
        """Forget half-made changes."""
        self._open.clear()

    def patch(self, summary: str) -> Patch:
        changed = {path: source for path, source in self._open.items() if source.changes}
        if not changed:
            raise NotPossible("nothing to change")
        return Patch(
            "patch",
            summary,
            files={path: source.rewritten() for path, source in changed.items()},
            before={path: source.original for path, source in changed.items()},
        )


Way = Callable[[Desk, Diagnosed], "str | Patch"]


def at_the_first(*ways: Callable[[Source, int], str], code: str = "", note: str = "") -> Way:
    """A way that tries each of these on each line of the finding, until one of them fits."""

    def way(desk: Desk, finding: Diagnosed) -> str:
        problems: list[NotPossible] = []
        places = [(source.path, line) for source, line in desk.lines(finding, code, note)]
        for path, line in places:
            for one in ways:
                desk.afresh()
                try:
                    return one(desk.source(str(path)), line)
                except NotPossible as found:
                    problems.append(found)
        desk.afresh()
        raise problems[0] if problems else NotPossible(NO_LINE)

    return way


def in_the_files(*ways: Callable[[Source], str]) -> Way:
    """A way that tries each of these on each file of the finding, until one of them fits."""

    return lambda desk, finding: _first_that_fits(desk, [source.path for source in desk.sources(finding)], ways)


def in_what_they_import(*ways: Callable[[Source], str]) -> Way:
    """The same for the files of the finding and for the user's own modules that they import."""

    def way(desk: Desk, finding: Diagnosed) -> str:
        return _first_that_fits(desk, list(dict.fromkeys(source.path for source in desk.sources_and_imports(finding))), ways)

    return way


def _first_that_fits(desk: Desk, paths: Sequence[Path], ways: Sequence[Callable[[Source], str]]) -> str:
    problem = NotPossible("the finding names none of your own files")
    for path in paths:
        for one in ways:
            desk.afresh()
            try:
                return one(desk.source(str(path)))
            except NotPossible as found:
                problem = found
    desk.afresh()
    raise problem


def _imported_files(source: Source) -> Iterator[Path]:
    """Modules beside the file, or beside its package, that it imports by name."""
    folder = source.path.parent
    for node in source.all(cst.ImportFrom):
        module = source.code(node.module) if node.module is not None else ""
        above = folder.parents[len(node.relative) - 2] if len(node.relative) > 1 else folder
        names = [] if isinstance(node.names, cst.ImportStar) else [source.code(alias.name) for alias in node.names]
        for base in (above,) if node.relative else (folder, folder.parent):
            for dotted in (module, *(f"{module}.{name}".strip(".") for name in names)):
                yield from _module_file(base, dotted)
    for plain in source.all(cst.Import):
        for alias in plain.names:
            for base in (folder, folder.parent):
                yield from _module_file(base, source.code(alias.name))


def _module_file(base: Path, dotted: str) -> Iterator[Path]:
    path = base.joinpath(*dotted.split(".")).with_suffix(".py") if dotted else base
    if dotted and path.is_file():
        yield path
