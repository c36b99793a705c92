"""Cures `logging/…`: one counter for all points of a name, one folder for each writer."""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import (
    add_import,
    argument,
    calls_at,
    drop_argument,
    grouped,
    iterated,
    loop_around,
    names_read,
)
from trainsleuth.remedies.source import NotPossible, Source, called_name
from trainsleuth.remedies.values import passed

STEPS = {"add_scalar": (2, "global_step"), "log": (1, "step"), "log_metric": (2, "step"), "log_metrics": (1, "step")}
COUNTED = m.Call(func=m.Name("range") | m.Name("trange"))
BY_POSITION = m.Call(func=m.Name("enumerate"))


def over_all_epochs(source: Source, line: int) -> str:
    """A step that is the batch's number within its epoch becomes `epoch * len(loader) + batch`."""
    call, step = _step(source, line)
    names = {name.value for name in names_read(source, step.value)}
    inner = next((loop for loop in _loops_around(source, call) if names & _bound(source, loop)), None)
    if inner is None or not (m.matches(inner.iter, BY_POSITION) or m.matches(inner.iter, COUNTED)):
        raise NotPossible(f"the step in {source.path.name}:{line} is no number of a batch within a loop")
    epoch = _name_of_the_epoch(source, inner)
    if epoch in names:
        raise NotPossible(f"the step in {source.path.name}:{line} is counted over epochs already")
    length = _length(source, inner)
    own = source.module.code_for_node(grouped(step.value))
    source.replace(step.value, cst.parse_expression(f"{epoch} * {length} + {own}"))
    return f"the step of line {line} counts over all epochs"


def own_counter(source: Source, line: int) -> str:
    """The points of a line are numbered one after the other."""
    call, step = _step(source, line)
    tag = argument(call, 0, "tag", "key")
    word = re.sub(r"\W+", "_", str(tag.value.evaluated_value)).strip("_") if tag is not None and isinstance(tag.value, cst.SimpleString) else ""
    counter = f"points_of_{word}" if word else "points"
    if counter in {name.value for name in source.all(cst.Name)}:
        raise NotPossible(f"the name {counter} is taken in {source.path.name}")
    top = next(node for node in (call, *source.above(call)) if source.parent(node) is source.module)
    source.before(source.statement_of(top), f"{counter} = itertools.count()")
    add_import(source, "import itertools", "itertools")
    source.replace(step.value, cst.parse_expression(f"next({counter})"))
    return f"the points of line {line} are numbered one after the other"


def counted_by_the_logger(source: Source, line: int) -> str:
    """Without a step of its own, W&B puts the record where it is."""
    call, step = _step(source, line)
    if called_name(call) != "log":
        raise NotPossible("no call of W&B")
    drop_argument(source, call, step)
    return f"line {line} gives no step of its own, so that W&B counts it with the others"


def folder_of_its_own(source: Source, line: int) -> str:
    call, folder = _writer(source, line)
    owner = source.enclosing(call, cst.ClassDef) or source.enclosing(call, cst.FunctionDef)
    name = owner.name.value.lower().strip("_") if owner is not None else ""
    name = name if name not in ("", "__init__", "main", "train", "run") else "second"
    add_import(source, "import os", "os")
    source.replace(folder.value, cst.parse_expression(f'os.path.join({source.code(folder.value)}, "{name}")'))
    return f"the writer of line {line} has a folder of its own, `{name}` beneath the one that it shared"


def folder_for_each_process(source: Source, line: int) -> str:
    _, folder = _writer(source, line)
    add_import(source, "import os", "os")
    ranks = 'f"rank{os.environ.get(\'RANK\', os.getpid())}"'
    source.replace(folder.value, cst.parse_expression(f"os.path.join({source.code(folder.value)}, {ranks})"))
    return f"the writer of line {line} has a folder for each process"


def _writer(source: Source, line: int) -> tuple[cst.Call, cst.Arg]:
    for call in calls_at(source, line, "SummaryWriter"):
        folder = argument(call, 0, "log_dir")
        if folder is not None and not m.matches(folder.value, m.Name("None")):
            return call, folder
    raise NotPossible(f"{source.path.name}:{line} makes no writer on a folder that it names")


def _step(source: Source, line: int) -> tuple[cst.Call, cst.Arg]:
    for call in calls_at(source, line, *STEPS):
        position, keyword = STEPS[called_name(call)]
        step = argument(call, position, keyword)
        if step is not None:
            return call, step
    raise NotPossible(f"{source.path.name}:{line} gives a logger no step")


def _loops_around(source: Source, node: cst.CSTNode) -> list[cst.For]:
    """The loops around a node, within its function, inner before outer."""
    found = []
    loop = loop_around(source, node)
    while loop is not None:
        if isinstance(loop, cst.For):
            found.append(loop)
        loop = loop_around(source, loop)
    return found


def _bound(source: Source, loop: cst.For) -> set[str]:
    """The name of a loop that counts: of `for i, x in enumerate(…)` the first."""
    target: cst.CSTNode = loop.target
    if isinstance(target, cst.Tuple):
        target = target.elements[0].value
    return {target.value} if isinstance(target, cst.Name) else set()


def _name_of_the_epoch(source: Source, inner: cst.For) -> str:
    """What counts the passes: a loop around, or a parameter that gets the number of such a loop."""
    for loop in _loops_around(source, inner):
        if m.matches(loop.iter, COUNTED) and isinstance(loop.target, cst.Name):
            return loop.target.value
    function = source.enclosing(inner, cst.FunctionDef)
    for parameter in function.params.params if function is not None else ():
        assert function is not None
        for value in passed(source, function, parameter.name.value):
            loops = _loops_around(source, value)
            if isinstance(value, cst.Name) and any(value.value in _bound(source, loop) and m.matches(loop.iter, COUNTED) for loop in loops):
                return parameter.name.value
    raise NotPossible("no counter of the epochs is known there")


def _length(source: Source, inner: cst.For) -> str:
    """How many rounds a loop makes."""
    over = iterated(inner)
    if isinstance(over, (cst.Name, cst.Attribute)):
        return f"len({source.code(over)})"
    if m.matches(over, m.Call(func=m.Name("range"), args=[m.Arg()])) and isinstance(over, cst.Call):
        return source.module.code_for_node(grouped(over.args[0].value))
    raise NotPossible("how many batches an epoch has is not known there")
