"""Cures `stall/vanishing-gradient` and `stall/dead-units`: another activation between the layers, no bias that silences them."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from trainsleuth.remedies.expressions import argument, called, function_or_module, number_of
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything
from trainsleuth.remedies.values import given, written_out

SATURATING = {"Sigmoid": "ReLU", "Tanh": "ReLU", "sigmoid": "relu", "tanh": "relu", "Softsign": "ReLU", "LogSigmoid": "ReLU"}
RECTIFIERS = {"ReLU": "LeakyReLU", "ReLU6": "LeakyReLU", "relu": "leaky_relu"}


def not_saturating(source: Source, line: int) -> str:
    """Sigmoid or tanh becomes ReLU: where the layer is built, else in the forward of its class."""
    for scope in _scopes(source, line):
        found = _activations(source, scope, SATURATING)
        if found:
            return _replace(source, found, SATURATING)
    raise NotPossible(f"no saturating activation is written near {source.path.name}:{line}")


def leaky(source: Source, line: int) -> str:
    """ReLU becomes LeakyReLU, which lets a gradient through where it is zero."""
    for scope in _scopes(source, line):
        found = [call for call in _activations(source, scope, RECTIFIERS) if _plain(source, call)]
        if found:
            return _replace(source, found, RECTIFIERS)
    raise NotPossible(f"no ReLU is written near {source.path.name}:{line}")


def _plain(source: Source, call: cst.Call) -> bool:
    """Without a positional `inplace`, which LeakyReLU would take for its slope."""
    if called_name(call) != "relu":
        return argument(call, 0) is None
    of_torch = isinstance(call.func, cst.Attribute) and source.code(call.func.value) in ("F", "nn.functional", "functional")
    return of_torch and argument(call, 1) is None


def _scopes(source: Source, line: int) -> list[cst.CSTNode]:
    """The statement, the function around it, its class."""
    statement = source.statement_at(line)
    owner = source.enclosing(statement, cst.ClassDef)
    return [node for node in (statement, function_or_module(source, statement), owner) if node is not None]


def _activations(source: Source, scope: cst.CSTNode, table: dict[str, str]) -> list[cst.Call]:
    found = [call for call in called(source, *table, below=scope)]
    return [call for call in found if not _gives_the_result(source, call)]


def _gives_the_result(source: Source, call: cst.Call) -> bool:
    """`return torch.sigmoid(self.head(x))`: a probability is meant there, not an activation between layers."""
    parent = source.parent(call)
    return isinstance(parent, cst.Return) and called_name(call).islower()


def _replace(source: Source, calls: Sequence[cst.Call], table: dict[str, str]) -> str:
    for call in calls:
        new = table[called_name(call)]
        if isinstance(call.func, cst.Attribute):
            source.replace(call.func.attr, cst.Name(new))
        else:
            source.replace(call.func, cst.Name(new))
    olds = ", ".join(dict.fromkeys(called_name(call) for call in calls))
    news = ", ".join(dict.fromkeys(table[called_name(call)] for call in calls))
    lines = ", ".join(str(source.first_line(call)) for call in calls[:6])
    return f"{news} instead of {olds} between the layers (line {lines})"


def no_silencing_bias(source: Source) -> str:
    """A bias that is set to a clearly negative number on hidden layers is not set any more."""
    for call in called(source, "constant_", "fill_"):
        target, value = _filled(source, call)
        if "bias" not in target or value is None or not _negative(source, value):
            continue
        statement = source.statement_of(call)
        source.remove(next(node for node in everything(statement) if isinstance(node, cst.Expr)))
        return f"line {source.first_line(call)} no longer sets the bias of every layer below zero"
    raise NotPossible("no line sets a bias below zero")


def _returned(source: Source, value: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a function of this file returns that the value comes from."""
    functions = source.function_named(called_name(value)) if isinstance(value, cst.Call) else []
    return [node.value for function in functions for node in source.all(cst.Return, function) if node.value is not None]


def _filled(source: Source, call: cst.Call) -> tuple[str, cst.BaseExpression | None]:
    if called_name(call) == "constant_":
        target, value = argument(call, 0, "tensor"), argument(call, 1, "val")
        return (source.code(target.value) if target else ""), (value.value if value else None)
    given = argument(call, 0, "value")
    return source.code(call.func), (given.value if given else None)


def _negative(source: Source, value: cst.BaseExpression) -> bool:
    """Whether the number is below zero, as far as that can be read off: written out, or the negative of something."""
    try:
        number = number_of(written_out(source, value))
        return number is not None and number < -0.5
    except NotPossible:
        return any(
            isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)
            for node in (value, *given(source, value), *_returned(source, value))
        )
