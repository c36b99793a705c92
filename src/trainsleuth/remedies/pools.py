"""Cures `hang/queue-nobody-feeds` of a pool whose tasks wait for tasks of the same pool: the inner tasks get a pool of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import argument, called
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything

WAITS = ("result", "wait", "as_completed", "exception")
Holder = cst.FunctionDef | cst.ClassDef | cst.Module


@dataclass(frozen=True)
class Pool:
    """A pool of threads: the name it has, where that name is known, and what makes it."""

    name: str
    made: cst.Call
    known_in: Holder


def pool_of_their_own(source: Source) -> str:
    """Tasks that submit tasks to their own pool, and wait for them, submit them to another one."""
    found = [(pool, inner) for pool in _pools(source) if (inner := _inner_submits(source, pool))]
    if len(found) != 1:
        raise NotPossible("no pool was recognised whose tasks submit further tasks to it" if not found else "several pools wait for themselves")
    pool, inner = found[0]
    new = pool.name + ("_INNER" if pool.name.isupper() else "_inner")
    if any(source.code(node) == new for node in everything(source.module) if isinstance(node, (cst.Name, cst.Attribute))):
        raise NotPossible(f"{new} has another meaning already")
    _make_beside(source, pool, new)
    for receiver in inner:
        source.replace(receiver, cst.parse_expression(new))
    for call in called(source, "shutdown", below=pool.known_in):
        assert isinstance(call.func, cst.Attribute)
        if source.code(call.func.value) == pool.name and isinstance(source.parent(call), cst.Expr):
            source.after(source.statement_of(call), source.code(call).replace(pool.name, new, 1))
    return f"the tasks that wait submit theirs to {new}, a pool of its own (line {source.first_line(inner[0])}), not to the one they run in"


def _pools(source: Source) -> Iterator[Pool]:
    """Pools of threads that are made in this file and given a name."""
    for call in called(source, "ThreadPoolExecutor"):
        above = source.parent(call)
        if isinstance(above, cst.Assign) and len(above.targets) == 1:
            target: cst.CSTNode = above.targets[0].target
        elif isinstance(above, cst.AnnAssign):
            target = above.target
        elif isinstance(above, cst.WithItem) and above.asname is not None:
            target = above.asname.name
        else:
            continue
        own = m.matches(target, m.Attribute(value=m.Name("self")))
        known = source.enclosing(call, cst.ClassDef) if own else source.enclosing(call, cst.FunctionDef) or source.module
        if (own or isinstance(target, cst.Name)) and known is not None:
            yield Pool(source.code(target), call, known)


def _inner_submits(source: Source, pool: Pool) -> list[cst.BaseExpression]:
    """The pool's name, wherever a task of it submits to it and waits, or is passed it to do so."""
    submits = _submits(source, pool.name, pool.known_in)
    found: list[cst.BaseExpression] = []
    submitting, deeper = set(), set()
    for function in _closure(source, {name for call in submits for name in _runs(call.args[0].value)}):
        passed = _passed_as(source, submits, pool, function)
        if not passed and not _is_known(source, pool, function):
            continue
        own = [call for name in (passed or [pool.name]) for call in _submits(source, name, function)]
        if own:
            submitting.add(function.name.value)
            deeper |= {inner for call in own for inner in _runs(call.args[0].value)}
        if own and _waits(source, function, own):
            found += [place for places in passed.values() for place in places] or [call.func.value for call in own]  # type: ignore[attr-defined]
    if submitting & {function.name.value for function in _closure(source, deeper)}:
        raise NotPossible("the inner tasks submit tasks themselves: no number of pools would be enough")
    return found


def _submits(source: Source, name: str, below: cst.CSTNode) -> list[cst.Call]:
    return [call for call in called(source, "submit", "map", below=below) if _receiver(source, call) == name and call.args]


def _waits(source: Source, function: cst.FunctionDef, own: list[cst.Call]) -> bool:
    """Whether the results are waited for, in the function or in one that it calls."""
    if any(called_name(call) == "map" for call in own):
        return True
    return any(called(source, *WAITS, below=inner) for inner in _closure(source, {function.name.value}))


def _receiver(source: Source, call: cst.Call) -> str:
    return source.code(call.func.value) if isinstance(call.func, cst.Attribute) else ""


def _runs(task: cst.BaseExpression) -> set[str]:
    """The functions that a task runs: `f`, `self.f`, `partial(f, …)`, `lambda: f(…)`."""
    if isinstance(task, cst.Lambda):
        return {called_name(call) for call in everything(task.body) if isinstance(call, cst.Call)}
    if isinstance(task, cst.Call) and called_name(task) == "partial" and task.args:
        return _runs(task.args[0].value)
    return {task.attr.value} if isinstance(task, cst.Attribute) else {task.value} if isinstance(task, cst.Name) else set()


def _closure(source: Source, names: set[str]) -> list[cst.FunctionDef]:
    """The functions of this file with these names, and those that they call."""
    functions = source.all(cst.FunctionDef)
    found, fresh = set(), set(names)
    while fresh:
        found |= fresh
        fresh = {called_name(call) for function in functions if function.name.value in fresh for call in source.all(cst.Call, function)} - found
    return [function for function in functions if function.name.value in found]


def _is_known(source: Source, pool: Pool, function: cst.FunctionDef) -> bool:
    """Whether the pool's name means this pool inside the function."""
    return pool.known_in in list(source.above(function)) and pool.name not in _parameters(function)


def _parameters(function: cst.FunctionDef) -> list[str]:
    return [parameter.name.value for parameter in function.params.params if parameter.name.value != "self"]


def _passed_as(source: Source, submits: list[cst.Call], pool: Pool, function: cst.FunctionDef) -> dict[str, list[cst.BaseExpression]]:
    """The parameter by which the function is passed the pool where it is submitted to it, and the places that pass it."""
    passed: dict[str, list[cst.BaseExpression]] = {}
    parameters = _parameters(function)
    for call in submits:
        if called_name(call) == "submit" and function.name.value in _runs(call.args[0].value):
            for position, name in enumerate(parameters):
                given = argument(call, position + 1, name)
                if given is not None and source.code(given.value) == pool.name:
                    passed.setdefault(name, []).append(given.value)
    return passed


def _make_beside(source: Source, pool: Pool, new: str) -> None:
    """Make a second pool of the same size: before the first one in a `with`, so that it is there as long, otherwise behind it."""
    given = [argument for argument in pool.made.args if argument.keyword is None or argument.keyword.value != "thread_name_prefix"]
    plain = [argument for argument in given if argument.keyword is None and not argument.star]
    if len(plain) > 1:
        given.remove(plain[1])
    arguments = ", ".join(source.code(argument).rstrip(",").rstrip() for argument in given)
    made = f"{source.code(pool.made.func)}({arguments})"
    if len(plain) > 2:
        raise NotPossible("the pool is made with arguments that are told apart by their place only")
    item = source.parent(pool.made)
    if not isinstance(item, cst.WithItem):
        source.after(source.statement_of(pool.made), f"{new} = {made}")
        return
    holder = source.parent(item)
    assert isinstance(holder, cst.With)
    at = next(index for index, known in enumerate(holder.items) if known is item)
    name = cst.AsName(name=cst.Name(new), whitespace_before_as=cst.SimpleWhitespace(" "), whitespace_after_as=cst.SimpleWhitespace(" "))
    second = cst.WithItem(item=cst.parse_expression(made), asname=name, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))

    def add(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.With)
        return updated.with_changes(items=[*updated.items[:at], second, *updated.items[at:]])

    source.edit(holder, add)
