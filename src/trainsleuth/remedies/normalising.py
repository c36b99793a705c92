"""Cures `data/not-normalised`: a norm layer without weights stands before the first layer, in training and in use alike."""

from __future__ import annotations

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import argument, called, torch_nn
from trainsleuth.remedies.source import NotPossible, Source, called_name

NORMS = {"Linear": "BatchNorm1d", "Conv1d": "BatchNorm1d", "Conv2d": "BatchNorm2d", "Conv3d": "BatchNorm3d"}
COST = "; in training each batch is scaled by its own numbers, so scaling the data once, where they are loaded, is better still"


def norm_first(source: Source) -> str:
    """The first layer of the only model of the file gets a BatchNorm before it."""
    for call in called(source, "Sequential"):
        first = call.args[0].value if call.args else None
        if isinstance(first, cst.Call) and called_name(first) in NORMS and not call.args[0].star:
            norm = _norm(source, first)
            before = call.args[1].comma if len(call.args) > 2 else cst.MaybeSentinel.DEFAULT
            comma = call.args[0].comma if len(call.args) > 1 else before
            added = cst.Arg(cst.parse_expression(norm), comma=comma)
            source.edit(call, lambda updated, added=added: updated.with_changes(args=[added, *updated.args]))  # type: ignore[misc]
            return f"{norm} stands before the first layer (line {source.first_line(first)}){COST}"
    return _attribute(source)


def _attribute(source: Source) -> str:
    """`self.fc1 = nn.Linear(…)` of the only module class becomes a pair of norm and layer."""
    for owner in source.all(cst.ClassDef):
        if not any("Module" in source.code(base.value) for base in owner.bases):
            continue
        for node in source.all(cst.Assign, owner):
            if (
                isinstance(node.value, cst.Call)
                and called_name(node.value) in NORMS
                and m.matches(node.targets[0].target, m.Attribute(value=m.Name("self")))
            ):
                name = source.code(node.targets[0].target)
                if f"{name}." in source.code(owner).replace(f"{name}.to(", ""):
                    raise NotPossible(f"{name} is used in more ways than by a call")
                norm, nn, layer = _norm(source, node.value), torch_nn(source), node.value
                source.replace(layer, cst.parse_expression(f"{nn}.Sequential({norm}, {source.code(layer)})"))
                return f"{norm} stands before the first layer (line {source.first_line(node)}){COST}"
    raise NotPossible("the first layer is not written where it can be seen")


def _norm(source: Source, layer: cst.Call) -> str:
    size = argument(layer, 0, "in_features", "in_channels")
    if size is None:
        raise NotPossible("the size of the first layer is not written out")
    return f"{torch_nn(source)}.{NORMS[called_name(layer)]}({source.code(size.value)}, affine=False)"
