"""Makes the patch for a finding: reads the roles of its lines off the source, and lets the remedy of its rule rewrite them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies import eval_in_training, gradients_discarded, params_frozen, params_not_in_optimizer
from trainsleuth.remedies.patch import Patch
from trainsleuth.remedies.source import NotPossible, Source, read
from trainsleuth.trials.knobs import Pointed


class Diagnosed(Protocol):
    """A finding, as far as a remedy must know it."""

    @property
    def rule(self) -> str: ...
    @property
    def where(self) -> Sequence[Pointed]: ...
    @property
    def evidence(self) -> Sequence[str]: ...


def propose(finding: Diagnosed) -> Patch | None:
    """The patch that cures a finding, advice where no rewrite is sound, or None where its rule has no remedy."""
    return next(iter(candidates(finding)), None)


def candidates(finding: Diagnosed) -> list[Patch]:
    """The patches worth trying, best first: the one that keeps what was meant, then the plain one."""
    entry = REMEDIES.get(finding.rule)
    if entry is None:
        return []
    make, advice = entry
    found: list[Patch] = []
    for plain in (False, True):
        desk = Desk(plain)
        try:
            patch = desk.patch(make(desk, finding))
        except NotPossible as problem:
            patch = Patch("advice", f"{advice} (No patch: {problem}.)")
        if patch.files not in [other.files for other in found]:
            found.append(patch)
    return found


class Desk:
    """The files that are open while a remedy works, each parsed once; `plain` asks for no guess at what was meant."""

    def __init__(self, plain: bool = False) -> None:
        self.plain = plain
        self._open: dict[Path, Source] = {}

    def source(self, file: str) -> Source:
        path = Path(file).resolve()
        if path not in self._open:
            self._open[path] = read(path)
        return self._open[path]

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


def _params_frozen(desk: Desk, finding: Diagnosed) -> str:
    freezing = [place for place in finding.where if "requires_grad" in place.code]
    if freezing:
        file = freezing[0].file
        lines = [place.line for place in freezing if place.file == file]
        return params_frozen.rewrite(desk.source(file), lines, [] if desk.plain else finding.evidence)
    for file in dict.fromkeys(place.file for place in finding.where):
        lines = _made_frozen(desk.source(file), " ".join(finding.evidence))
        if lines:
            return params_frozen.rewrite(desk.source(file), lines, [] if desk.plain else finding.evidence)
    raise NotPossible("no line sets requires_grad where it can be seen")


def _made_frozen(source: Source, evidence: str) -> list[int]:
    """Lines that make a parameter without a gradient, under a name that the evidence has."""
    lines = []
    frozen = m.Arg(keyword=m.Name("requires_grad"), value=m.Name("False"))
    for node in source.all(cst.Assign):
        target = node.targets[0].target
        name = target.attr.value if isinstance(target, cst.Attribute) else getattr(target, "value", "")
        arguments = [argument for argument in source.all(cst.Arg, node.value) if m.matches(argument, frozen)]
        if arguments and re.search(rf"(?:^|[\s.,]){re.escape(str(name))}\b", evidence):
            lines.append(source.first_line(arguments[0]))
    return lines


def _params_not_in_optimizer(desk: Desk, finding: Diagnosed) -> str:
    builders = [place for place in finding.where if "made after" not in place.note and "assign=" not in place.note]
    problem = NotPossible("the finding names no line that builds an optimizer")
    for place in builders:
        source = desk.source(place.file)
        others = [other.line for other in finding.where if other is not place and Path(other.file).resolve() == source.path]
        try:
            return params_not_in_optimizer.rewrite(source, place.line, others)
        except NotPossible as found:
            problem = found
            desk.afresh()
    raise problem


def _gradients_discarded(desk: Desk, finding: Diagnosed) -> str:
    clearing = [place for place in finding.where if "zero_grad" in place.code]
    step = next((place for place in finding.where if re.search(r"\.step\(", place.code) and "zero_grad" not in place.code), None)
    if not clearing:
        if step is None:
            raise NotPossible("the finding names no call of zero_grad")
        return gradients_discarded.rewrite_by_hand(desk.source(step.file), step.line)
    file = clearing[0].file
    lines = [place.line for place in clearing if place.file == file]
    stepping = desk.source(step.file) if step is not None else desk.source(file)
    return gradients_discarded.rewrite(desk.source(file), lines, stepping, step.line if step is not None else None)


def _eval_in_training(desk: Desk, finding: Diagnosed) -> str:
    setting = [place for place in finding.where if re.search(r"\.eval\(\)|\.train\(False\)", place.code)]
    problem = NotPossible("the finding names no line of a training loop")
    for place in finding.where:
        if place not in setting:
            try:
                return eval_in_training.wake_before_forward(desk.source(place.file), place.line)
            except NotPossible as found:
                problem = found
                desk.afresh()
    for place in setting:
        return eval_in_training.drop_eval(desk.source(place.file), place.line)
    raise problem


REMEDIES: dict[str, tuple[Callable[[Desk, Diagnosed], str], str]] = {
    "stall/params-frozen": (
        _params_frozen, "Freeze by module instead of by a pattern in names, and print what is left trainable.",
    ),
    "stall/params-not-in-optimizer": (
        _params_not_in_optimizer,
        "Build the optimizer from the final model: after heads are replaced, wrappers applied, weights loaded.",
    ),
    "stall/accumulated-gradients-discarded": (
        _gradients_discarded, "Clear the gradients right after the step that used them, and nowhere else.",
    ),
    "mode/eval-during-training": (
        _eval_in_training, "Call model.train() at the start of each epoch, after validation has put the model into eval mode.",
    ),
}  # fmt: skip
