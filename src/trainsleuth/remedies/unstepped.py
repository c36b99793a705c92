"""Cures `schedule/never-stepped`: the scheduler is stepped behind the optimizer, or handed to the framework that would step it."""

from __future__ import annotations

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import called
from trainsleuth.remedies.gradients_discarded import behind_the_scaler, looks_like_a_step
from trainsleuth.remedies.source import NotPossible, Source, Statement, everything

CONFIGURES = "configure_optimizers"


def step_it(desk: Desk, finding: Diagnosed) -> str:
    """Behind the optimizer's step, under the name that the scheduler has there."""
    built = _built(desk, finding)
    source, made, name = built
    for stepping, line in desk.lines(finding, note="steps here"):
        statement = stepping.statement_at(line)
        if not any(isinstance(node, cst.Call) and looks_like_a_step(stepping, node) for node in everything(statement)):
            continue
        here = stepping.path == source.path
        same = here and stepping.enclosing(statement, cst.FunctionDef) is source.enclosing(made, cst.FunctionDef)
        method = here and stepping.enclosing(statement, cst.ClassDef) is source.enclosing(made, cst.ClassDef)
        if _is_in(source, made, CONFIGURES) and method:
            text = "self.lr_schedulers().step()"
        elif same or (method and name.startswith("self.")):
            text = f"{name}.step()"
        else:
            continue
        if any(text == source.code(call) for call in called(stepping, "step")):
            raise NotPossible(f"{text} stands in {stepping.path.name} already, where the run did not come")
        stepping.after(behind_the_scaler(stepping, statement), text)
        return f"the scheduler steps behind the optimizer (line {line})"
    raise NotPossible("the scheduler has no name where the optimizer steps")


def hand_it_over(desk: Desk, finding: Diagnosed) -> str:
    """`configure_optimizers` builds a scheduler and returns the optimizer alone: Lightning steps only what it is given."""
    source, made, name = _built(desk, finding)
    function = source.enclosing(made, cst.FunctionDef)
    if function is None or function.name.value != CONFIGURES or "." in name:
        raise NotPossible(f"{source.path.name} does not build the scheduler in {CONFIGURES}")
    returns = source.all(cst.Return, function)
    if len(returns) != 1 or not m.matches(returns[0].value, m.Name()):  # type: ignore[arg-type]
        raise NotPossible(f"{CONFIGURES} returns more than an optimizer")
    optimizer = source.code(returns[0].value)  # type: ignore[arg-type]
    source.replace(
        returns[0].value,  # type: ignore[arg-type]
        cst.parse_expression(f'{{"optimizer": {optimizer}, "lr_scheduler": {{"scheduler": {name}, "interval": "step"}}}}'),
    )
    return f"{CONFIGURES} returns the scheduler, too (line {source.first_line(returns[0])}), and Lightning steps it"


def _built(desk: Desk, finding: Diagnosed) -> tuple[Source, Statement, str]:
    for source, line in desk.lines(finding, note="is never stepped"):
        statement = source.statement_at(line)
        for node in everything(statement):
            if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call):
                return source, statement, source.code(node.targets[0].target)
    raise NotPossible("the finding names no line that gives a scheduler a name")


def _is_in(source: Source, node: cst.CSTNode, name: str) -> bool:
    function = source.enclosing(node, cst.FunctionDef)
    return function is not None and function.name.value == name
