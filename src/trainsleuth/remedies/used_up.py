"""Cures `stall/params-not-in-optimizer`: parameters came from a generator that somebody else had read before the optimizer did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import assignments, function_or_module, is_bound, names_read, rewrite_as, text_of
from trainsleuth.remedies.source import NotPossible, Source, Statement, called_name, everything
from trainsleuth.remedies.values import given

METHODS = (
    "parameters", "named_parameters", "buffers", "named_buffers", "modules", "named_modules", "children", "named_children",
    "from_iterable", "chain",
)  # fmt: skip
FUNCTIONS = ("filter", "map", "zip", "chain")
ONLY_LOOKS = ("print", "isinstance", "type", "id", "repr", "str", "hasattr", "callable", "len")


@dataclass(frozen=True)
class Read:
    """A generator, under the name that it is read by; `key` is where it lies in the dictionary that has the name."""

    name: str
    value: cst.BaseExpression
    key: str | None = None
    held: bool = False  # inside a list or a dictionary


def list_of_what_is_read_twice(source: Source, line: int) -> str:
    """The generators that lead to the optimizer in this line, and that are read before as well, become lists."""
    statement = source.statement_at(line)
    home = function_or_module(source, statement)
    wanted = _behind(source, home, statement)
    twice = [made for made in _generators(source, home, wanted) if _is_read_before(source, home, statement, made)]
    if not twice:
        raise NotPossible(f"no generator that leads to {source.path.name}:{line} is read before that")
    for made in twice:
        if isinstance(made.value, cst.GeneratorExp):
            source.replace(made.value, cst.ListComp(elt=made.value.elt, for_in=made.value.for_in))
        else:
            rewrite_as(source, made.value, "list({x})", x=made.value)
    names = list(dict.fromkeys(made.name for made in twice))
    said = "holds lists" if twice[0].held else "are lists" if len(names) > 1 else "is a list"
    return f"{' and '.join(names)} {said}: a generator is used up by the first who reads it (line {source.first_line(twice[0].value)})"


def _behind(source: Source, home: cst.CSTNode, statement: Statement) -> set[str]:
    """The names that a statement is computed from: its own, and those of the assignments and loops that made them."""
    found, before = _names(source, statement), 0
    while len(found) > before:
        before = len(found)
        for target, value in assignments(source, home):
            if {node.value for node in everything(target) if isinstance(node, cst.Name)} & found:
                found |= _names(source, value)
        for call in source.all(cst.Call, home):
            if _fills(call) and _names(source, call.func) & found:
                found |= _names(source, *call.args)
        for loop in source.all(cst.For, home):
            if any(_fills(call) and _names(source, call.func) & found for call in source.all(cst.Call, loop.body)):
                found |= _names(source, loop.iter)
    return found


def _names(source: Source, *below: cst.CSTNode) -> set[str]:
    return {node.value for node in names_read(source, *below)}


def _fills(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and called_name(call) in ("append", "extend", "add")


def _generators(source: Source, home: cst.CSTNode, wanted: set[str]) -> Iterator[Read]:
    for target, value in assignments(source, home):
        if isinstance(target, cst.Name) and target.value in wanted and _bound_once(source, home, target.value):
            if _is_a_generator(source, value):
                yield Read(target.value, value)
            for key, inner in _held(value):
                if _is_a_generator(source, inner):
                    yield Read(target.value, inner, key, held=True)
    if isinstance(home, cst.FunctionDef):
        for parameter in home.params.params:
            name = parameter.name.value
            reads = [node for node in names_read(source, home.body) if node.value == name]
            if name in wanted and reads and not _bindings(source, home, name):
                yield from (Read(name, value) for value in given(source, reads[0]) if _is_a_generator(source, value))


def _bindings(source: Source, home: cst.CSTNode, name: str) -> int:
    inside = home.body if isinstance(home, cst.FunctionDef) else home
    return sum(1 for node in source.all(cst.Name, inside) if node.value == name and is_bound(source, node))


def _bound_once(source: Source, home: cst.CSTNode, name: str) -> bool:
    own = isinstance(home, cst.FunctionDef) and any(parameter.name.value == name for parameter in home.params.params)
    return not own and _bindings(source, home, name) == 1


def _held(value: cst.BaseExpression) -> Iterator[tuple[str | None, cst.BaseExpression]]:
    """What lies in a list or a dictionary that is written out, with its key."""
    if isinstance(value, (cst.List, cst.Tuple)):
        for element in value.elements:
            yield None, element.value
            yield from _held(element.value)
    elif isinstance(value, cst.Dict):
        yield from ((text_of(entry.key), entry.value) for entry in value.elements if isinstance(entry, cst.DictElement))
    elif m.matches(value, m.Call(func=m.Name("dict"))) and isinstance(value, cst.Call):
        yield from ((entry.keyword.value, entry.value) for entry in value.args if entry.keyword is not None)


def _is_a_generator(source: Source, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.GeneratorExp):
        return True
    if not isinstance(value, cst.Call):
        return False
    if isinstance(value.func, cst.Attribute):
        return called_name(value) in METHODS
    own = source.function_named(called_name(value))
    return any(source.all(cst.Yield, function) for function in own) if own else called_name(value) in FUNCTIONS


def _is_read_before(source: Source, home: cst.CSTNode, statement: Statement, made: Read) -> bool:
    """Whether it is read at least twice up to the statement, and not on two sides of one condition."""
    end = source.span(statement).end.line
    inside = home.body if isinstance(home, cst.FunctionDef) else home
    reads = [
        node for node in names_read(source, inside)
        if node.value == made.name and source.first_line(node) <= end and _reads_it(source, node)
    ]  # fmt: skip
    if any(_taker(source, node) == "next" for node in reads):
        return False  # it is meant to be read bit by bit
    if not made.held:
        return any(not _exclusive(source, first, second) for at, first in enumerate(reads) for second in reads[at + 1 :])
    return len(reads) > 1 and any(_looks_inside(source, node, made.key) and statement not in source.above(node) for node in reads)


def _reads_it(source: Source, node: cst.Name) -> bool:
    above = source.parent(node)
    if isinstance(above, (cst.Comparison, cst.ComparisonTarget, cst.FormattedStringExpression)):
        return False
    return _taker(source, node) not in ONLY_LOOKS


def _taker(source: Source, node: cst.Name) -> str:
    """The function that a name is given to."""
    above = source.parent(node)
    call = source.parent(above) if isinstance(above, cst.Arg) else None
    return called_name(call) if isinstance(call, cst.Call) else ""


def _looks_inside(source: Source, node: cst.Name, key: str | None) -> bool:
    """Whether a list or a dictionary is read together with the generator that lies in it."""
    above = source.parent(node)
    if isinstance(above, cst.Subscript):
        index = above.slice[0].slice
        return not (isinstance(index, cst.Index) and text_of(index.value) not in (None, key))
    around = next((found for found in source.above(node) if isinstance(found, (cst.For, cst.CompFor, cst.SimpleStatementLine))), None)
    whole = source.parent(around) if isinstance(around, cst.CompFor) else around
    if whole is None or isinstance(whole, cst.SimpleStatementLine):
        return False
    return key is None or bool(re.search(rf"\[[\"']{re.escape(key)}[\"']\]|\.items\(\)|\.values\(\)", source.code(whole)))


def _exclusive(source: Source, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    """Whether two places lie on different sides of one condition."""
    above = set(source.above(second))
    for block in source.above(first):
        if isinstance(block, (cst.If, cst.IfExp)) and block in above:
            return {_side(source, block, first), _side(source, block, second)} == {block.body, block.orelse}
    return False


def _side(source: Source, block: cst.CSTNode, node: cst.CSTNode) -> cst.CSTNode:
    return next(found for found in (node, *source.above(node)) if source.parent(found) is block)
