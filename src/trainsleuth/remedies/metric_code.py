"""Cures `stall/metric-does-not-follow-loss`: predictions over another axis, of another shape, or of another time than the labels."""

from __future__ import annotations

import re
from collections.abc import Callable

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import argument, called, drop_argument, is_true, number_of
from trainsleuth.remedies.source import NotPossible, Source, called_name

BEST = ("argmax", "max", "topk")
KEPT = re.compile(r"^(functools\.)?(lru_cache|cache)(\(|$)")


def over_the_classes(axis: int) -> Callable[[Source], str]:
    """The one argmax over another axis than the classes runs over them; of scores with more than two axes."""

    def way(source: Source) -> str:
        others = [(call, given) for call, given in _best_of(source) if number_of(given.value) not in (axis, None)]
        if len(others) != 1 or any(number_of(given.value) == axis for _, given in _best_of(source)):
            raise NotPossible(f"no single argmax of {source.path.name} runs over another axis than the classes")
        call, given = others[0]
        source.replace(given.value, cst.Integer(str(axis)))
        return f"the {called_name(call)} of line {source.first_line(call)} runs over axis {axis}, where the classes are"

    return way


def without_an_axis_of_one(source: Source) -> str:
    """`argmax(1, keepdim=True) == labels` compares each prediction with each label."""
    found = [(call, given) for call, _ in _best_of(source) if is_true(call, None, "keepdim") and (given := argument(call, None, "keepdim"))]
    if len(found) != 1:
        raise NotPossible(f"no single argmax of {source.path.name} keeps its axis")
    call, given = found[0]
    if re.search(r"view_as|reshape|view\(|unsqueeze|gather", source.code(source.enclosing(call, cst.FunctionDef) or source.module)):
        raise NotPossible("the shapes are adapted elsewhere")
    drop_argument(source, call, given)
    return f"the {called_name(call)} of line {source.first_line(call)} gives one prediction for each sample"


def computed_anew(source: Source) -> str:
    """What is computed once and kept is computed each time: predictions belong to the weights that made them."""
    kept = [node for node in source.all(cst.IfExp) if _kept_expression(source, node)]
    decorated = [node for node in source.all(cst.Decorator) if KEPT.search(source.code(node.decorator))]
    blocks = [node for node in source.all(cst.If) if _kept_block(source, node)]
    if len(kept) + len(decorated) + len(blocks) != 1:
        raise NotPossible(f"nothing single in {source.path.name} is computed once and kept")
    for expression in kept:
        source.replace(expression, expression.orelse)
    for decorator in decorated:
        source.changes[decorator] = lambda _: cst.RemoveFromParent()
    for block in blocks:
        source.replace(block.test, cst.Name("True"))
    line = source.first_line([*kept, *decorated, *blocks][0])
    return f"line {line} computes anew each time"


def _best_of(source: Source) -> list[tuple[cst.Call, cst.Arg]]:
    """Calls of argmax and the like with the axis that is written out."""
    found = []
    for call in called(source, *BEST):
        of_torch = isinstance(call.func, cst.Attribute) and source.code(call.func.value) in ("torch", "np", "numpy")
        given = argument(call, 1 if of_torch else 0, "dim", "axis")
        if given is not None and number_of(given.value) is not None:
            found.append((call, given))
    return found


def _kept_expression(source: Source, node: cst.IfExp) -> bool:
    """`self.a if self.a is not None else f()`"""
    test = source.code(node.test)
    return test in (f"{source.code(node.body)} is not None", source.code(node.body)) and isinstance(node.orelse, cst.Call)


def _kept_block(source: Source, node: cst.If) -> bool:
    """`if self.a is None: self.a = f()`, and nothing else."""
    if node.orelse is not None or not isinstance(node.body, cst.IndentedBlock) or len(node.body.body) != 1:
        return False
    found = re.fullmatch(r"(self\.\w+) is None|not (self\.\w+)", source.code(node.test))
    statement = node.body.body[0]
    assigned = m.matches(statement, m.SimpleStatementLine(body=[m.Assign(value=m.Call())]))
    return found is not None and assigned and source.code(statement).startswith(f"{found[1] or found[2]} =")
