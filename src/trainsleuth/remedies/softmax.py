"""Cures `stall/double-softmax` and `stall/wrong-softmax-axis`: the activation goes, or gets the axis of the classes."""

from __future__ import annotations

import libcst as cst
from libcst import matchers as m

from _trainsleuth_inside.knobs.softmax_over_classes import only_longer_axis
from trainsleuth.remedies.expressions import argument, called, calls_at, number_of, rewrite_as, set_argument
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything

ACTIVATIONS = ("softmax", "sigmoid", "Softmax", "Sigmoid", "Softmax2d", "log_softmax", "LogSoftmax")
BUILT = ("Softmax", "Sigmoid", "Softmax2d")


def drop_activation(source: Source, line: int) -> str:
    """`softmax(z)` becomes `z`; `nn.Softmax()` leaves its nn.Sequential."""
    statement = source.statement_at(line)
    for call in calls_at(source, line):
        name = called_name(call)
        if not source.covers(call, line):
            continue
        if name in ("softmax", "sigmoid") and not (isinstance(call.func, cst.Attribute) and _is_tensor_method(source, call)):
            return _replace_by_input(source, call, line)
        if name in ("softmax", "sigmoid") and isinstance(call.func, cst.Attribute):
            source.replace(call, call.func.value)
            return f"line {line} gives logits: no {name} before the loss"
        if name in BUILT and not isinstance(source.parent(call), cst.Assign):
            return _out_of_a_sequence(source, call, line)
    attribute = _built_as_attribute(source, statement)
    if attribute:
        return _replace_uses(source, attribute)
    return _called_attribute(source, line)


def _is_tensor_method(source: Source, call: cst.Call) -> bool:
    """`logits.softmax(-1)` rather than `torch.softmax(logits, -1)` or `self.softmax(logits)`."""
    assert isinstance(call.func, cst.Attribute)
    receiver = source.code(call.func.value)
    if receiver in ("torch", "F", "nn.functional", "functional", "torch.nn.functional", "special", "torch.special"):
        return False
    first = argument(call, 0, "dim")
    return not call.args or (first is not None and number_of(first.value) is not None)


def _replace_by_input(source: Source, call: cst.Call, line: int) -> str:
    given = argument(call, 0, "input")
    if given is None:
        raise NotPossible(f"{source.path.name}:{line} has no {called_name(call)} of something")
    source.replace(call, given.value)
    return f"line {line} gives logits: no {called_name(call)} before the loss"


def _out_of_a_sequence(source: Source, call: cst.Call, line: int) -> str:
    holder = source.parent(call)
    if isinstance(holder, cst.Arg):
        owner = source.parent(holder)
        if isinstance(owner, cst.Call) and len(owner.args) > 1:
            left = [given for given in owner.args if given is not holder]
            if holder is owner.args[-1]:
                left[-1] = left[-1].with_changes(comma=holder.comma)
            source.edit(owner, lambda updated: updated.with_changes(args=left))
            return f"the {called_name(call)} in line {source.first_line(call)} is taken out: the loss gets logits"
    if isinstance(holder, cst.Element):
        owner = source.parent(holder)
        if isinstance(owner, (cst.List, cst.Tuple)) and len(owner.elements) > 1:
            elements = [element for element in owner.elements if element is not holder]
            source.edit(owner, lambda updated: updated.with_changes(elements=elements))
            return f"the {called_name(call)} in line {source.first_line(call)} is taken out: the loss gets logits"
    if holder is not None:
        identity = cst.parse_expression(source.code(call.func).replace(called_name(call), "Identity") + "()")
        source.replace(call, identity)
        return f"the {called_name(call)} in line {source.first_line(call)} does nothing any more: the loss gets logits"
    raise NotPossible(f"the activation of {source.path.name}:{line} cannot be taken out")


def _built_as_attribute(source: Source, statement: cst.CSTNode) -> str:
    """`softmax` of `self.softmax = nn.Softmax(dim=1)`."""
    for node in everything(statement):
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call) and called_name(node.value) in BUILT:
            return source.code(node.targets[0].target)
    return ""


def _replace_uses(source: Source, target: str) -> str:
    uses = [call for call in source.all(cst.Call) if source.code(call.func) == target and call.args]
    if not uses:
        raise NotPossible(f"{target} is not called in this file")
    for call in uses:
        source.replace(call, call.args[0].value)
    lines = ", ".join(str(source.first_line(call)) for call in uses)
    return f"line {lines} gives logits: {target} is no longer applied before the loss"


def _called_attribute(source: Source, line: int) -> str:
    """The line calls an attribute that was built as an activation: `self.act(x)`."""
    built = {
        source.code(node.targets[0].target) for node in source.all(cst.Assign)
        if isinstance(node.value, cst.Call) and called_name(node.value) in BUILT
    }  # fmt: skip
    for call in calls_at(source, line):
        if source.code(call.func) in built and call.args:
            source.replace(call, call.args[0].value)
            return f"line {line} gives logits: no {source.code(call.func)} before the loss"
    raise NotPossible(f"{source.path.name}:{line} applies no softmax or sigmoid itself")


def logarithm(source: Source, line: int) -> str:
    """`softmax` becomes `log_softmax`, `nn.Softmax` becomes `nn.LogSoftmax`."""
    for call in calls_at(source, line, "softmax", "Softmax"):
        new = cst.Name("LogSoftmax" if called_name(call) == "Softmax" else "log_softmax")
        if isinstance(call.func, cst.Attribute):
            source.replace(call.func.attr, new)
            return f"line {source.first_line(call)} gives the logarithm of the probabilities, which the loss wants"
    raise NotPossible(f"{source.path.name}:{line} applies no softmax itself")


def class_axis(source: Source, line: int) -> str:
    """The softmax runs over the last axis."""
    for call in calls_at(source, line, *ACTIVATIONS):
        return _over_classes(source, call)
    raise NotPossible(f"{source.path.name}:{line} applies no softmax itself")


def only_softmax(source: Source) -> str:
    """The file has one softmax over axis 0."""
    found = [call for call in called(source, *ACTIVATIONS) if _axis(call) == 0]
    if len(found) != 1:
        raise NotPossible("no single softmax of the file runs over axis 0")
    return _over_classes(source, found[0])


def _axis(call: cst.Call) -> float | None:
    given = _axis_argument(call)
    return None if given is None else number_of(given.value)


def _axis_argument(call: cst.Call) -> cst.Arg | None:
    method = isinstance(call.func, cst.Attribute) and not m.matches(call.func.value, m.Name("torch") | m.Name("F"))
    first = 0 if called_name(call)[0].isupper() or (method and len(call.args) < 2) else 1
    return argument(call, first, "dim", "axis")


def _over_classes(source: Source, call: cst.Call) -> str:
    given = _axis_argument(call)
    if given is None:
        if called_name(call)[0].isupper() or len(call.args) == 1:
            set_argument(source, call, "dim", "-1")
            return f"the softmax in line {source.first_line(call)} runs over the classes (dim=-1)"
        raise NotPossible("the axis of the softmax is not written out")
    if number_of(given.value) in (-1.0, 1.0):
        raise NotPossible(f"the softmax in line {source.first_line(call)} runs over axis 1 already")
    rewrite_as(source, given.value, "-1")
    return f"the softmax in line {source.first_line(call)} runs over the classes (dim=-1), not over the batch"


def named_axis(source: Source, line: int, axis: int, what: str) -> str:
    """The softmax runs over this axis."""
    used = {source.code(call.func) for call in calls_at(source, line)}
    built = [
        node.value for node in source.all(cst.Assign)
        if isinstance(node.value, cst.Call) and called_name(node.value) in ACTIVATIONS and source.code(node.targets[0].target) in used
    ]  # fmt: skip
    for call in [*calls_at(source, line, *ACTIVATIONS), *(built if len(built) == 1 else [])]:
        given = _axis_argument(call)
        if given is not None:
            rewrite_as(source, given.value, str(axis))
            return f"the softmax in line {source.first_line(call)} runs over axis {axis}, {what}"
    raise NotPossible(f"{source.path.name}:{line} applies no softmax with an axis written out")


def longer_axis(source: Source, line: int, shape: list[int]) -> str:
    """A softmax over an axis of one element runs over the only other one that is longer."""
    longer = only_longer_axis(shape)
    if longer is None:
        raise NotPossible(f"of the shape {tuple(shape)} more than one axis, or none, could be meant")
    return named_axis(source, line, longer, f"which has {shape[longer]} elements, not one")
