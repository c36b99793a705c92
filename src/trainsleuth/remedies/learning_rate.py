"""Cures of learning rates: an integer division that makes them zero, a size that kills units or makes the run diverge."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import argument, called, calls_at, number_of, rewrite_as
from trainsleuth.remedies.frameworks import HUGGING_FACE
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, names_in
from trainsleuth.remedies.values import assigned, written_out

SCHEDULES = ("LambdaLR", "MultiplicativeLR")
DEPTH = 4


def divide_truly(source: Source, line: int) -> str:
    """`//` becomes `/` in whatever the learning rate of this optimizer or schedule is computed from."""
    for call in calls_at(source, line):
        for start in _rate_expressions(source, call):
            division = _division(source, start, DEPTH)
            if division is not None:
                source.replace(division.operator, cst.Divide())
                return f"line {source.first_line(division)} divides without rounding down: {source.code(division)} was 0"
    raise NotPossible(f"no integer division leads to the learning rate in {source.path.name}:{line}")


def _rate_expressions(source: Source, call: cst.Call) -> list[cst.CSTNode]:
    if called_name(call) in SCHEDULES:
        given = argument(call, 1, "lr_lambda")
        return [] if given is None else [given.value]
    given = argument(call, None, "lr", "learning_rate")
    found: list[cst.CSTNode] = [] if given is None else [given.value]
    if call.args:
        found.append(call.args[0].value)  # groups, each with its own rate
    return found


def _division(source: Source, node: cst.CSTNode, depth: int) -> cst.BinaryOperation | None:
    """The integer division in an expression, or in what its names were given."""
    for part in everything(node):
        if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.FloorDivide):
            return part
    if depth == 0:
        return None
    for name in sorted(names_in(node)):
        nexts: list[cst.CSTNode] = [*assigned(source, name), *_appended(source, name)]
        nexts += [inner for function in source.function_named(name) for inner in source.all(cst.Return, function)]
        for value in nexts:
            found = _division(source, value, depth - 1)
            if found is not None:
                return found
    return None


def _appended(source: Source, name: str) -> list[cst.CSTNode]:
    """What is put into a list of groups."""
    return [call.args[0].value for call in called(source, "append") if call.args
            and isinstance(call.func, cst.Attribute) and source.code(call.func.value) == name]  # fmt: skip


def larger(factor: float) -> Callable[[Source, int], str]:
    """A way that multiplies the learning rate of the optimizer at a line."""

    def way(source: Source, line: int) -> str:
        here = [(call, argument(call, None, "lr", "learning_rate") or _second_of_an_optimizer(call)) for call in calls_at(source, line)]
        there = [(call, argument(call, None, "learning_rate", "lr")) for call in called(source, *HUGGING_FACE)]
        for _, given in (*here, *there):
            if given is not None:
                before = number_of(given.value)
                after = f"{before * factor:g}" if before else f"{factor:g} * ({source.code(given.value)})"
                first = source.first_line(given.value)
                source.replace(given.value, cst.parse_expression(after))
                return f"the learning rate is {factor:g} times as large (line {first}); if it was divided on the way, leave that out instead"
        raise NotPossible(f"{source.path.name}:{line} sets no learning rate")

    return way


def smaller(factor: float) -> Callable[[Source, int], str]:
    """A way that divides the learning rate of the optimizer at a line."""

    def way(source: Source, line: int) -> str:
        for call in calls_at(source, line):
            given = argument(call, None, "lr", "learning_rate") or _second_of_an_optimizer(call)
            if given is not None:
                return _divide(source, given.value, factor)
        for configured in called(source, *HUGGING_FACE):
            given = argument(configured, None, "learning_rate", "lr")
            if given is not None:
                return _divide(source, given.value, factor)
        raise NotPossible(f"{source.path.name}:{line} sets no learning rate")

    return way


def _second_of_an_optimizer(call: cst.Call) -> cst.Arg | None:
    given = argument(call, 1)
    first = call.args[0].value if call.args else None
    takes_parameters = isinstance(first, cst.Call) and called_name(first) == "parameters"
    return given if takes_parameters and given is not None and given.keyword is None else None


def _divide(source: Source, node: cst.BaseExpression, factor: float) -> str:
    try:
        value = written_out(source, node)
    except NotPossible:
        value = node
    before = number_of(value)
    if before is None and isinstance(node, (cst.Attribute, cst.Subscript)):  # from a file or the command line
        source.replace(node, cst.parse_expression(f"{source.code(node)} / {factor:g}"))
        return f"the learning rate {source.code(node)} is divided by {factor:g} (line {source.first_line(node)}); better set it so"
    if before is None or before <= 0:
        raise NotPossible("the learning rate is not a positive number")
    after = f"{before / factor:g}"
    source.replace(value, cst.parse_expression(after))
    return f"the learning rate is {after} instead of {source.code(value)} (line {source.first_line(value)})"


def factor_divided_truly(source: Source) -> str:
    """`self.scale = a // b`, by which something is multiplied, is 0 where a is smaller than b: it is divided with its fraction."""
    for node in source.all(cst.Assign):
        owner, target, value = source.enclosing(node, cst.ClassDef), node.targets[0].target, node.value
        if owner is None or not isinstance(target, cst.Attribute) or not m.matches(value, m.BinaryOperation(operator=m.FloorDivide())):
            continue
        name = source.code(target)
        products = [part for part in source.all(cst.BinaryOperation, owner) if isinstance(part.operator, cst.Multiply)]
        if any(name in (source.code(part.left), source.code(part.right)) for part in products):
            rewrite_as(source, value, "{x} / {y}", x=value.left, y=value.right)  # type: ignore[attr-defined]
            return f"{name} is a fraction, where whole division makes it 0 (line {source.first_line(node)})"
    raise NotPossible("no factor of these files is divided by whole numbers")
