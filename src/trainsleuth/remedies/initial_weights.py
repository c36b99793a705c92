"""Cures `stall/vanishing-gradient` where weights are drawn with one size for all layers: they are drawn by the size of their layer."""

from __future__ import annotations

import libcst as cst

from trainsleuth.remedies.expressions import argument, called, torch_nn
from trainsleuth.remedies.source import NotPossible, Source, called_name

DRAWS = ("normal_", "trunc_normal_", "uniform_")


def by_the_size_of_the_layer(source: Source) -> str:
    """`init.normal_(m.weight, std=0.02)`, or `m.weight.data.normal_(0, 0.02)`, becomes `kaiming_normal_`."""
    changed = []
    for call in called(source, *DRAWS):
        drawn = _drawn(source, call)
        if drawn is not None and source.code(drawn).removesuffix(".data").endswith("weight"):
            weight = source.code(drawn).removesuffix(".data")
            source.replace(call, cst.parse_expression(f"{torch_nn(source)}.init.kaiming_normal_({weight})"))
            changed.append((source.first_line(call), called_name(call)))
    if not changed:
        raise NotPossible("no line draws weights with a size of its own")
    lines = ", ".join(str(line) for line, _ in changed)
    return f"line {lines} draws weights by the size of their layer (kaiming_normal_), not with one size for all"


def _drawn(source: Source, call: cst.Call) -> cst.BaseExpression | None:
    assert isinstance(call.func, cst.Attribute | cst.Name)
    if isinstance(call.func, cst.Attribute) and source.code(call.func.value).rpartition(".")[2] != "init":
        return call.func.value
    given = argument(call, 0, "tensor")
    return given.value if given is not None else None
