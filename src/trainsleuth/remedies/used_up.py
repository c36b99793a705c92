"""Cures `stall/params-not-in-optimizer`: parameters came from a generator that somebody else had read before the optimizer did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import assignments, function_or_module, is_bound, names_read, rewrite_as, text_of
from trainsleuth.remedies.source import NotPossible, Source, Statement, called_name, names_in
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
    inside = home.body if isinstance(home, cst.FunctionDef) else home
    reads = _reads(source, inside, source.span(statement).end.line)
    twice = [made for made in _generators(source, home, inside, reads) if _is_read_before(source, statement, made, reads[made.name])]
    wanted = _behind(source, inside, statement) if twice else set()
    twice = [made for made in twice if made.name in wanted]
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


def _reads(source: Source, inside: cst.CSTNode, end: int) -> dict[str, list[cst.Name]]:
    """Where each name is read, up to a line."""
    found: dict[str, list[cst.Name]] = {}
    for node in names_read(source, inside):
        if source.first_line(node) <= end and _reads_it(source, node):
            found.setdefault(node.value, []).append(node)
    return found


def _behind(source: Source, inside: cst.CSTNode, statement: Statement) -> set[str]:
    """The names that a statement is computed from: its own, and those of the assignments and loops that made them."""
    links = [(names_in(target), _names(source, value)) for target, value in assignments(source, inside)]
    links += [(_names(source, call.func), _names(source, *call.args)) for call in source.all(cst.Call, inside) if _fills(call)]
    for loop in source.all(cst.For, inside):
        filled = [call.func for call in source.all(cst.Call, loop.body) if _fills(call)]
        links.append((_names(source, *filled), _names(source, loop.iter)))
    found, before = _names(source, statement), 0
    while len(found) > before:
        before = len(found)
        for made, used in links:
            found |= used if made & found else set()
    return found


def _names(source: Source, *below: cst.CSTNode) -> set[str]:
    return {node.value for node in names_read(source, *below)}


def _fills(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and called_name(call) in ("append", "extend", "add")


def _generators(source: Source, home: cst.CSTNode, inside: cst.CSTNode, reads: dict[str, list[cst.Name]]) -> Iterator[Read]:
    """Generators that are given a name once, or passed to the function, and read by that name more than once."""
    bound = Counter(node.value for node in source.all(cst.Name, inside) if is_bound(source, node))
    passed = [parameter.name.value for parameter in home.params.params] if isinstance(home, cst.FunctionDef) else []
    yielding = {function.name.value: bool(source.all(cst.Yield, function)) for function in source.all(cst.FunctionDef)}
    for target, value in assignments(source, inside):
        name = target.value if isinstance(target, cst.Name) else ""
        if len(reads.get(name, ())) > 1 and bound[name] == 1 and name not in passed:
            if _is_a_generator(value, yielding):
                yield Read(name, value)
            yield from (Read(name, inner, key, held=True) for key, inner in _held(value) if _is_a_generator(inner, yielding))
    for name in passed:
        if len(reads.get(name, ())) > 1 and not bound[name] and name != "self":
            yield from (Read(name, value) for value in given(source, reads[name][0]) if _is_a_generator(value, yielding))


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


def _is_a_generator(value: cst.BaseExpression, yielding: dict[str, bool]) -> bool:
    if isinstance(value, cst.GeneratorExp):
        return True
    if not isinstance(value, cst.Call):
        return False
    name = called_name(value)
    return name in METHODS if isinstance(value.func, cst.Attribute) else yielding.get(name, name in FUNCTIONS)


def _is_read_before(source: Source, statement: Statement, made: Read, reads: list[cst.Name]) -> bool:
    """Whether it is read as a whole at least twice, and not on two sides of one condition."""
    if any(_taker(source, node) == "next" for node in reads):
        return False  # it is meant to be read bit by bit
    if not made.held:
        return any(not _exclusive(source, first, second) for at, first in enumerate(reads) for second in reads[at + 1 :])
    return any(_looks_inside(source, node, made.key) and statement not in source.above(node) for node in reads)


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
