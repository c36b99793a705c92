"""Cures `data/labels-constant`: a fraction is cut to a whole number, which is 0, before it is multiplied by the number of classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import assignments, function_or_module, grouped, number_of
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything

WHOLE = re.compile(r"""^(dtype=)?((torch|np|numpy)\.)?["']?(u?int(8|16|32|64)?_?|long|short|LongTensor|IntTensor)["']?$""")
FRACTION = ("rand", "random", "uniform", "sigmoid", "softmax", "remainder", "fmod", "frac", "rand_like", "random_sample")
NO_FRACTION = (
    "randint", "argmax", "argmin", "arange", "range", "eq", "ne", "gt", "ge", "lt", "le", "isin", "bool", "bernoulli", "round",
    "input", "get", "split", "group",
)  # fmt: skip


@dataclass(frozen=True)
class Cut:
    """A number that is cut, and the whole product that it stands in."""

    cut: cst.Call
    number: cst.BaseExpression
    product: cst.BaseExpression
    sure: bool  # the number is known to be a fraction


def multiply_before_cutting(desk: Desk, finding: Diagnosed) -> str:
    """`turn.long() * n` becomes `(turn * n).long()`, at the only place of these files and of what they import."""
    found = [(source, cut) for source in list(desk.sources_and_imports(finding)) for cut in _cuts(source)]
    sure = [(source, cut) for source, cut in found if cut.sure]
    if len(sure or found) != 1:
        raise NotPossible("no single place was found where a fraction is cut before it is multiplied")
    source, place = (sure or found)[0]
    source.replace(place.cut, grouped(place.number))
    method = place.cut.func if isinstance(place.cut.func, cst.Attribute) else None

    def cut_last(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.BaseExpression)
        if method is None:
            return place.cut.with_changes(args=[cst.Arg(updated.with_changes(lpar=[], rpar=[]))])
        return place.cut.with_changes(func=method.with_changes(value=grouped(updated)))

    source.edit(place.product, cut_last)
    return f"line {source.first_line(place.product)} multiplies {source.code(place.number)} before it is cut to a whole number"


def _cuts(source: Source) -> Iterator[Cut]:
    for call in source.all(cst.Call):
        number = _cut_number(source, call)
        product = _product_around(source, call)
        if number is None or product is None or _is_an_index(source, product) or _is_rounded_to_a_multiple(source, number, product):
            continue
        origin = [number, *_origins(source, number)]
        if any(_is_no_fraction(node) for node in origin):
            continue
        sure = any(_is_a_fraction(node) for node in origin)
        if sure or isinstance(call.func, cst.Attribute):
            yield Cut(call, number, product, sure)


def _cut_number(source: Source, call: cst.Call) -> cst.BaseExpression | None:
    """`x` of `x.long()`, `x.to(torch.long)`, `x.astype(int)` and `int(x)`."""
    if m.matches(call, m.Call(func=m.Name("int"), args=[m.Arg(keyword=None, star="")])):
        return call.args[0].value
    if not isinstance(call.func, cst.Attribute):
        return None
    if called_name(call) in ("long", "int", "short") and not call.args:
        return call.func.value
    whole = [given for given in call.args if WHOLE.match(source.code(given).rstrip(", "))]
    return call.func.value if called_name(call) in ("to", "type", "astype") and len(whole) == len(call.args) == 1 else None


def _product_around(source: Source, call: cst.Call) -> cst.BaseExpression | None:
    """The whole product of which the call is a factor."""
    found: cst.BaseExpression | None = None
    node: cst.CSTNode | None = source.parent(call)
    while isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        found, node = node, source.parent(node)
    return found


def _is_an_index(source: Source, product: cst.BaseExpression) -> bool:
    """`row.long() * width + column` counts the cells of a table, where rows are meant to be whole."""
    above = source.parent(product)
    if not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, (cst.Add, cst.Subtract)):
        return False
    return number_of(above.right if above.left is product else above.left) is None


def _is_rounded_to_a_multiple(source: Source, number: cst.BaseExpression, product: cst.BaseExpression) -> bool:
    """`(x / step).int() * step` is meant."""
    factors = {source.code(factor) for factor in _factors(product)}
    return any(
        isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide) and source.code(node.right) in factors
        for start in (number, *_origins(source, number)) for node in everything(start)
    )  # fmt: skip


def _factors(product: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(product, cst.BinaryOperation) and isinstance(product.operator, cst.Multiply):
        yield from _factors(product.left)
        yield from _factors(product.right)
    else:
        yield product


def _origins(source: Source, number: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What the name of a number was given in its function."""
    if not isinstance(number, cst.Name):
        return []
    return [value for target, value in assignments(source, function_or_module(source, number)) if source.code(target) == number.value]


def _is_no_fraction(value: cst.BaseExpression) -> bool:
    """Truths, counts and texts."""
    if m.matches(value, m.Comparison() | m.BooleanOperation() | m.UnaryOperation(operator=m.Not() | m.BitInvert()) | m.Integer()):
        return True
    if m.matches(value, m.BinaryOperation(operator=m.BitAnd() | m.BitOr() | m.FloorDivide() | m.Modulo())) and not _is_modulo_one(value):
        return True
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and _is_no_fraction(value.func.value):
        return True
    return _counts(value) or (isinstance(value, cst.Call) and called_name(value) in NO_FRACTION)


def _counts(node: cst.CSTNode) -> bool:
    """Whether something is computed from a number of entries, and not only divided by it."""
    if m.matches(node, m.BinaryOperation(operator=m.Divide())) and isinstance(node, cst.BinaryOperation):
        return _counts(node.left)
    counted = isinstance(node, cst.Call) and called_name(node) in ("len", "numel", "size")
    return counted or m.matches(node, m.Attribute(attr=m.Name("shape"))) or any(_counts(child) for child in node.children)


def _is_a_fraction(value: cst.BaseExpression) -> bool:
    return any(
        m.matches(node, m.BinaryOperation(operator=m.Divide())) or (isinstance(node, cst.Call) and called_name(node) in FRACTION)
        or _is_modulo_one(node)
        for node in everything(value)
    )  # fmt: skip


def _is_modulo_one(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo) and number_of(node.right) == 1
