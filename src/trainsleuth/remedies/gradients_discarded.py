"""Cures `stall/accumulated-gradients-discarded`: gradients are cleared right after the step that used them, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.source import NotPossible, Source, Statement, called_name, everything

BY_HAND = m.Assign(targets=[m.AssignTarget(target=m.Attribute(attr=m.Name("grad")))], value=m.Name("None"))


def rewrite(clearing: Source, lines: Sequence[int], stepping: Source, step_line: int | None) -> str:
    """Move the clearing at these lines behind the step; both files may be the same."""
    cleared = [_clearing_at(clearing, line) for line in dict.fromkeys(lines)]
    step = _step(stepping, step_line, cleared[0] if stepping is clearing else None)
    said = []
    for node in cleared:
        clearing.remove(node)
        said.append(f"line {clearing.first_line(node)} no longer clears gradients that wait for their step")
    optimizer = stepped(stepping, step)
    last = behind_the_scaler(stepping, stepping.statement_of(step))
    if not _clears_after(stepping, last, cleared):
        stepping.after(last, f"{optimizer}.zero_grad()")
        said.append(f"they are cleared after the step in line {stepping.first_line(step)}")
    return "; ".join(said)


def rewrite_by_hand(source: Source, step_line: int) -> str:
    """`p.grad = None` in a loop: the loop, or the only call of the function that it stands in, moves behind the step."""
    found = [node for node in source.all(cst.Assign) if m.matches(node, BY_HAND)]
    step = _step(source, step_line, None)
    home = source.enclosing(step, cst.FunctionDef)
    if len(found) != 1 or home is None:
        raise NotPossible("the line that clears the gradients was not found in the source")
    owner = source.enclosing(found[0], cst.FunctionDef)
    if owner is home:
        source.remove(found[0])
        source.after(source.statement_of(step), f"{stepped(source, step)}.zero_grad()")
        return _moved(source, found[0], step)
    calls = [
        statement for statement in source.all(cst.Expr, home)
        if owner is not None and isinstance(statement.value, cst.Call) and called_name(statement.value) == owner.name.value
    ]  # fmt: skip
    if len(calls) != 1 or calls[0].value.args:  # type: ignore[attr-defined]
        raise NotPossible("the call that clears the gradients was not found near the step")
    source.remove(calls[0])
    source.after(source.statement_of(step), source.code(calls[0]))
    return _moved(source, calls[0], step)


def _moved(source: Source, clearing: cst.CSTNode, step: cst.CSTNode) -> str:
    return f"gradients are cleared after the step in line {source.first_line(step)}, not in line {source.first_line(clearing)}"


def _clearing_at(source: Source, line: int) -> cst.Expr:
    statement = source.statement_at(line)
    for node in everything(statement):
        if _clears(node) and isinstance(node, cst.Expr) and source.covers(node, line):
            return node
    raise NotPossible(f"{source.path.name}:{line} does not call zero_grad itself")


def _step(source: Source, line: int | None, near: cst.CSTNode | None) -> cst.Call:
    """The call that steps: at the line that was recorded, or the only one in the function that clears."""
    if line is not None:
        for node in everything(source.statement_at(line)):
            if isinstance(node, cst.Call) and called_name(node) == "step" and source.covers(node, line):
                return node
    scope = source.enclosing(near, cst.FunctionDef) if near is not None else None
    for place in (scope, source.module):
        steps = [] if place is None else [call for call in source.all(cst.Call, place) if looks_like_a_step(source, call)]
        if len(steps) == 1:
            return steps[0]
    raise NotPossible("the step that uses the gradients was not found in the source")


def looks_like_a_step(source: Source, call: cst.Call) -> bool:
    if called_name(call) != "step" or not isinstance(call.func, cst.Attribute):
        return False
    receiver = source.code(call.func.value).lower()
    return "sched" not in receiver and "env" not in receiver.split(".") and "prof" not in receiver


def stepped(source: Source, step: cst.Call) -> str:
    """The optimizer's expression: of `optimizer.step()`, or of `scaler.step(optimizer)`."""
    assert isinstance(step.func, cst.Attribute)
    receiver = source.code(step.func.value)
    if step.args and "scaler" in receiver.lower():
        return source.code(step.args[0].value)
    return receiver


def behind_the_scaler(source: Source, step: Statement) -> Statement:
    """A scaler's update belongs to its step."""
    block = source.block_of(step)
    following = block[block.index(step) + 1 :]
    return following[0] if following and re.search(r"scaler\w*\.update\(", source.code(following[0]), re.I) else step


def _clears_after(source: Source, step: Statement, leaving: Sequence[cst.CSTNode]) -> bool:
    block = source.block_of(step)
    for statement in block[block.index(step) + 1 :]:
        if any(_clears(node) and node not in leaving for node in everything(statement)):
            return True
    return False


def _clears(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) and called_name(node.value) == "zero_grad"
