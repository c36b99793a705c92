"""Cures `schedule/warmup-never-ends`: the length of the schedule is counted in samples, and the program says how many make a batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import (
    argument,
    assignments,
    called,
    calls_at,
    grouped,
    is_bound,
    names_read,
    number_of,
    rewrite_as,
)
from trainsleuth.remedies.frameworks import HUGGING_FACE
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything
from trainsleuth.remedies.values import given, passed

COUNTING = ("len", "int", "max", "min", "round", "ceil", "floor", "float", "get")
LOADER = re.compile(r"(?i)loader|batches|_dl$|^dl$")
DATA = re.compile(r"(?i)data|train|set$|samples|examples|texts|rows|corpus")
DIVIDED = m.BinaryOperation(operator=m.Divide() | m.FloorDivide())


def count_batches_of_this_size(source: Source, line: int) -> str:
    """`len(data)` becomes the number of batches in it, where the schedule in this line is computed from it."""
    counts = _counts_behind(source, line)
    samples = _lengths_of_data(source, counts)
    if not samples:
        counts = _counts_behind(source, line, through_calls=True)
        samples = _lengths_of_data(source, counts)
    if len(samples) != 1:
        raise NotPossible(f"no single length of a data set leads to the schedule in {source.path.name}:{line}")
    length = samples[0]
    parts = _batch_size(source, _also_known_as(source, length.args[0].value))
    for part in parts:
        must_be_known_at(source, length, part)
    divisors = [source.code(node.right) for count in counts for node in everything(count)
                if m.matches(node, DIVIDED) and isinstance(node, cst.BinaryOperation)]  # fmt: skip
    if any(source.code(parts[0]) in divisor or "batch" in divisor for divisor in divisors):
        raise NotPossible(f"what leads to the schedule in {source.path.name}:{line} is divided by the size of a batch already")
    size = " * ".join(source.module.code_for_node(grouped(part)) for part in parts)
    source.replace(length, cst.parse_expression(f"-(-{source.code(length)} // {f'({size})' if len(parts) > 1 else size})"))
    return f"line {source.first_line(length)} counts batches of {size}, not the samples of {source.code(length.args[0].value)}"


def _lengths_of_data(source: Source, counts: list[cst.CSTNode]) -> list[cst.Call]:
    lengths = [call for count in counts for call in everything(count) if m.matches(call, m.Call(func=m.Name("len"), args=[m.Arg()]))]
    return [call for call in dict.fromkeys(lengths) if isinstance(call, cst.Call) and _is_a_data_set(source, call.args[0].value)]


def rounded_up(source: Source, line: int) -> str:
    """The floor division that leads to the length of the schedule in this line rounds up."""
    counts = _counts_behind(source, line)
    halves = [node for one in counts for node in everything(one) if m.matches(node, m.BinaryOperation(operator=m.FloorDivide()))]
    found = [node for node in dict.fromkeys(halves) if isinstance(node, cst.BinaryOperation)]
    if len(found) != 1:
        raise NotPossible(f"no single floor division leads to the schedule in {source.path.name}:{line}")
    part = found[0]
    rewrite_as(source, part, "-(-{x} // {y})", x=grouped(part.left), y=part.right)
    return f"line {source.first_line(part)} rounds up: a batch that is not full is a batch, too"


def _counts_behind(source: Source, line: int, through_calls: bool = False) -> list[cst.CSTNode]:
    """The numbers that the calls of a line are given (or a trainer that is configured in this file), and what those were computed from."""
    made, functions = list(assignments(source, source.module)), source.all(cst.FunctionDef)
    found: list[cst.CSTNode] = []
    fresh: list[cst.CSTNode] = [given.value for call in calls_at(source, line) for given in call.args if _is_a_count(given.value)]
    fresh += [given.value for call in called(source, *HUGGING_FACE) if (given := argument(call, None, "warmup_steps")) is not None]
    while fresh:
        node = fresh.pop()
        if node not in found:
            found.append(node)
            for name in _looked_up(source, node):
                fresh += [value for target, value in made if source.code(target) == source.code(name) and _same_place(source, target, name)]
                fresh += [function.body for function in functions if function.name.value == source.code(name) and _same_place(source, function, name)]
                home = source.enclosing(name, cst.FunctionDef)
                if through_calls and home is not None and source.code(name) in {parameter.name.value for parameter in home.params.params}:
                    fresh += passed(source, home, source.code(name))
            fresh = [value for value in fresh if _is_a_count(value)]
    return found


def _is_a_count(value: cst.CSTNode) -> bool:
    """Arithmetic, and nothing that makes an object."""
    return not any(isinstance(node, cst.Call) and called_name(node) not in COUNTING for node in everything(value))


def _looked_up(source: Source, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    yield from names_read(source, node)
    yield from (found for found in source.all(cst.Attribute, node) if m.matches(found, m.Attribute(value=m.Name("self"))))


def _same_place(source: Source, made: cst.CSTNode, name: cst.BaseExpression) -> bool:
    """Whether what is made at one place is what a name means at another: in a function around it, outside of all, or in one class for self."""
    if isinstance(name, cst.Attribute):
        return source.enclosing(made, cst.ClassDef) is source.enclosing(name, cst.ClassDef)
    home = source.enclosing(made, cst.FunctionDef)
    return home in list(source.above(name)) if home is not None else source.enclosing(made, cst.ClassDef) is None


def _also_known_as(source: Source, data: cst.BaseExpression) -> set[str]:
    """The data set's name, and what is passed where it is a parameter."""
    names = {source.code(data)}
    if isinstance(data, cst.Name):
        names |= {source.code(value) for value in given(source, data)}
    return names


def _is_a_data_set(source: Source, data: cst.BaseExpression) -> bool:
    """Whether what is counted are samples: it is given to a loader or a trainer, or called so, and is no loader itself."""
    names = _also_known_as(source, data)
    if any(LOADER.search(name) for name in names) or any(
        source.code(target) in names and isinstance(value, cst.Call) and called_name(value) == "DataLoader"
        for target, value in assignments(source, source.module)
    ):
        return False
    handed = {source.code(found.value) for call in source.all(cst.Call) if (found := argument(call, None, "train_dataset")) is not None}
    handed |= {source.code(found.value) for call in called(source, "DataLoader") if (found := argument(call, 0, "dataset")) is not None}
    return bool(names & handed) or bool(DATA.search(source.code(data)))


def _batch_size(source: Source, data: set[str]) -> list[cst.BaseExpression]:
    """What says how many samples make an update: of a trainer's settings, or of the loader of these data."""
    trainers = [call for call in called(source, *HUGGING_FACE) if argument(call, None, "per_device_train_batch_size") is not None]
    loaders = [call for call in called(source, "DataLoader") if argument(call, 1, "batch_size") is not None]
    own = [call for call in loaders if (fed := argument(call, 0, "dataset")) is not None and source.code(fed.value) in data]
    sizes = [argument(call, None, "per_device_train_batch_size") for call in trainers] or [argument(call, 1, "batch_size") for call in own or loaders]
    found = {source.code(size.value): size.value for size in sizes if size is not None}
    if len(found) != 1:
        raise NotPossible("the size of a batch is not given in one place of this file")
    together = argument(trainers[0], None, "gradient_accumulation_steps") if trainers else None
    return [*found.values(), *([together.value] if together is not None and number_of(together.value) != 1 else [])]


def must_be_known_at(source: Source, place: cst.CSTNode, wanted: cst.BaseExpression) -> None:
    """Each name of an expression must have a value at another place of the file, too."""
    functions = [found for found in source.above(place) if isinstance(found, cst.FunctionDef)]
    parameters = {parameter.name.value for function in functions for parameter in source.all(cst.Param, function.params)}
    for name in _roots(source, wanted):
        if name.value == "self" and source.enclosing(wanted, cst.ClassDef) is source.enclosing(place, cst.ClassDef) and functions:
            continue
        if name.value not in parameters - {"self"} and not any(
            found.value == name.value and _has_a_value(source, found, place, functions) for found in source.all(cst.Name)
        ):
            raise NotPossible(f"{name.value} is not known in line {source.first_line(place)}, where the schedule's length is counted")


def _roots(source: Source, wanted: cst.BaseExpression) -> list[cst.Name]:
    return [wanted] if isinstance(wanted, cst.Name) else names_read(source, wanted)


def _has_a_value(source: Source, name: cst.Name, place: cst.CSTNode, functions: list[cst.FunctionDef]) -> bool:
    """Whether a name gets a value here that it still has at the place: before it in its function, or outside of all functions."""
    if not is_bound(source, name) or any(isinstance(found, (cst.Lambda, cst.ClassDef, cst.CompFor)) for found in source.above(name)):
        return False
    home = source.enclosing(name, cst.FunctionDef)
    earlier = source.first_line(name) < source.first_line(place)
    return (home is None and bool(functions)) or (home is (functions[0] if functions else None) and earlier)
