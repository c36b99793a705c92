"""Cures `stall/inputs-and-targets-misaligned` of a language model: inputs and targets that are cut out of one sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from trainsleuth.remedies.expressions import number_of, rewrite_as
from trainsleuth.remedies.source import NotPossible, Source, called_name


@dataclass(frozen=True)
class Cut:
    """A part of a sequence: `tokens[:, 1:]`."""

    node: cst.Subscript
    sequence: str
    begins: float  # how many it leaves out at the beginning


def shifted_once(source: Source) -> str:
    """The targets are cut one further than the inputs, and shifted once more where the loss is computed: they become the inputs."""
    for first, second in _pairs(source):
        if second.begins > first.begins:
            source.replace(second.node, first.node.deep_clone())
            return f"the targets in line {source.first_line(second.node)} are the tokens themselves: they are shifted where the loss is computed"
    for node in source.all(cst.Assign):  # labels[:, :-1] = tokens[:, 1:]
        target, value = node.targets[0].target, _cut(source, node.value)
        if isinstance(target, cst.Subscript) and value is not None and value.begins == 1 and source.code(target).endswith(":-1]"):
            rewrite_as(source, target, f"{source.code(target.value)}[:]")
            source.replace(value.node, value.node.value)
            return f"the targets in line {source.first_line(node)} are the tokens themselves: they are shifted where the loss is computed"
    raise NotPossible(f"{source.path.name} cuts no inputs and targets out of one sequence")


def other_way_round(source: Source) -> str:
    """The inputs are cut one further than the targets: they change places."""
    for first, second in _pairs(source):
        if first.begins > second.begins:
            source.replace(first.node, second.node.deep_clone())
            source.replace(second.node, first.node.deep_clone())
            return f"inputs and targets in line {source.first_line(first.node)} change places: the targets come one later"
    raise NotPossible(f"{source.path.name} cuts no inputs and targets out of one sequence")


def _pairs(source: Source) -> Iterator[tuple[Cut, Cut]]:
    """Two different parts of the same sequence, side by side in a tuple, a dictionary or a call, or in two assignments of a block."""
    groups: list[list[cst.BaseExpression]] = []
    for tuple_ in source.all(cst.Tuple):
        groups.append([element.value for element in tuple_.elements])
    for dictionary in source.all(cst.Dict):
        groups.append([element.value for element in dictionary.elements if isinstance(element, cst.DictElement)])
    for call in source.all(cst.Call):
        groups.append([arg.value for arg in call.args])
    for block in source.all(cst.IndentedBlock):
        groups.append([
            part.value for line in block.body if isinstance(line, cst.SimpleStatementLine) for part in line.body if isinstance(part, cst.Assign)
        ])  # fmt: skip
    for group in groups:
        cuts = [cut for value in group if (cut := _cut(source, value)) is not None]
        for first, second in pairwise(cuts):
            if first.sequence == second.sequence and first.begins != second.begins:
                yield first, second


def _cut(source: Source, node: cst.CSTNode) -> Cut | None:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and called_name(node) in ("contiguous", "clone", "long"):
        node = node.func.value
    if not isinstance(node, cst.Subscript) or not isinstance(node.slice[-1].slice, cst.Slice):
        return None
    part = node.slice[-1].slice
    begins = 0.0 if part.lower is None else number_of(part.lower)
    if begins is None or begins < 0:
        return None
    return Cut(node, source.code(node.value), begins)
