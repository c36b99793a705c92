"""Where a number comes from: follows a name to the place in the file where its value is written out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import argument, called, number_of, text_of
from trainsleuth.remedies.source import NotPossible, Source, called_name

DEPTH = 5


def written_out(source: Source, node: cst.BaseExpression, depth: int = DEPTH) -> cst.BaseExpression:
    """The expression itself if it is a number, otherwise the number that the name in it was given, in this file and only once."""
    if number_of(node) is not None:
        return node
    found = list(dict.fromkeys(given(source, node))) if depth else []
    numbers = [value for value in found if number_of(value) is not None]
    if len(numbers) == 1:
        return numbers[0]
    if not numbers and len(found) == 1:
        return written_out(source, found[0], depth - 1)
    raise NotPossible(f"the value of {source.code(node)} is not written out in one place of {source.path.name}")


def given(source: Source, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a name or an attribute is given: assignments, defaults, arguments of calls, command-line defaults, dictionary entries."""
    if isinstance(node, cst.Name):
        function = source.enclosing(node, cst.FunctionDef)
        if function is not None and any(parameter.name.value == node.value for parameter in _parameters(function)):
            yield from passed(source, function, node.value)
        else:
            yield from assigned(source, node.value)
    elif isinstance(node, cst.Attribute):
        name = node.attr.value
        yield from assigned(source, source.code(node))
        for call in called(source, "add_argument"):
            option = argument(call, 0)
            if option is not None and (text_of(option.value) or "").lstrip("-").replace("-", "_") == name:
                default = argument(call, None, "default")
                if default is not None:
                    yield default.value
        for owner in source.all(cst.ClassDef):
            for field in source.all(cst.AnnAssign, owner):
                if (
                    m.matches(field.target, m.Name(name))
                    and field.value is not None
                    and source.enclosing(field, cst.FunctionDef) is None
                ):
                    yield field.value
        yield from _entries(source, name)
    elif isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        key = text_of(index.value) if isinstance(index, cst.Index) else None
        if key is not None:
            yield from _entries(source, key)


def named_numbers(source: Source, pattern: str) -> Iterator[cst.BaseExpression]:
    """Numbers that are written out under a name like this: fields, variables, defaults, options of a command line, entries."""
    for node in source.all(cst.Assign):
        if re.search(pattern, source.code(node.targets[0].target)):
            yield node.value
    for field in source.all(cst.AnnAssign):
        if field.value is not None and re.search(pattern, source.code(field.target)):
            yield field.value
    for parameter in source.all(cst.Param):
        if parameter.default is not None and re.search(pattern, parameter.name.value):
            yield parameter.default
    for entry in source.all(cst.DictElement):
        if re.search(pattern, text_of(entry.key) or ""):
            yield entry.value
    for call in called(source, "add_argument"):
        option, default = argument(call, 0), argument(call, None, "default")
        if option is not None and default is not None and re.search(pattern, text_of(option.value) or ""):
            yield default.value
    for given in source.all(cst.Arg):
        if given.keyword is not None and re.search(pattern, given.keyword.value):
            yield given.value


def assigned(source: Source, name: str) -> Iterator[cst.BaseExpression]:
    for node in source.all(cst.Assign):
        for target in node.targets:
            if source.code(target.target) == name:
                yield node.value
            elif isinstance(target.target, cst.Tuple) and isinstance(node.value, cst.Tuple):
                for left, right in zip(target.target.elements, node.value.elements):
                    if source.code(left.value) == name:
                        yield right.value
    for annotated in source.all(cst.AnnAssign):
        if source.code(annotated.target) == name and annotated.value is not None:
            yield annotated.value


def _parameters(function: cst.FunctionDef) -> list[cst.Param]:
    return [*function.params.posonly_params, *function.params.params, *function.params.kwonly_params]


def passed(source: Source, function: cst.FunctionDef, name: str) -> Iterator[cst.BaseExpression]:
    """What calls of the function pass for a parameter; its default if none of them does."""
    parameters = _parameters(function)
    position = next(index for index, parameter in enumerate(parameters) if parameter.name.value == name)
    method = bool(parameters) and parameters[0].name.value in ("self", "cls")
    owner = source.enclosing(function, cst.ClassDef)
    shown = owner.name.value if function.name.value == "__init__" and owner is not None else function.name.value
    values = []
    for call in called(source, shown):
        given = argument(call, position - int(method), name)
        if given is not None:
            values.append(given.value)
    default = parameters[position].default
    if values:
        yield from values
    elif default is not None:
        yield default


def _entries(source: Source, key: str) -> Iterator[cst.BaseExpression]:
    """Values under this key in dictionaries of the file, and keyword arguments of calls such as Namespace(lr=…) or Config(lr=…)."""
    for entry in source.all(cst.DictElement):
        if text_of(entry.key) == key:
            yield entry.value
    for call in source.all(cst.Call):
        if called_name(call) in ("dict", "Namespace", "SimpleNamespace") or called_name(call).lower().endswith(
            ("config", "args", "arguments")
        ):
            given = argument(call, None, key)
            if given is not None:
                yield given.value
