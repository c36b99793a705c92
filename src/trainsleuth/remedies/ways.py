"""Ways that read more of a finding than the line that it names: its notes, its evidence, several of its lines together."""

from __future__ import annotations

import re
from pathlib import Path

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies import (
    eval_in_training,
    gradients_discarded,
    log_calls,
    loss_arguments,
    metric_code,
    not_finite,
    params_frozen,
    params_not_in_optimizer,
    ranks,
    softmax,
)
from trainsleuth.remedies.desk import Desk, Diagnosed, at_the_first, in_the_files, in_what_they_import
from trainsleuth.remedies.expressions import add_import, rewrite_as
from trainsleuth.remedies.patch import Patch
from trainsleuth.remedies.source import NotPossible, Source, called_name


def freed_where_it_is_frozen(desk: Desk, finding: Diagnosed, plain: bool) -> str:
    freezing = [place for place in finding.where if "requires_grad" in place.code]
    if freezing:
        file = freezing[0].file
        lines = [place.line for place in freezing if place.file == file]
        return params_frozen.rewrite(desk.source(file), lines, [] if plain else finding.evidence)
    for file in dict.fromkeys(place.file for place in finding.where):
        lines = _made_frozen(desk.source(file), " ".join(finding.evidence))
        if lines:
            return params_frozen.rewrite(desk.source(file), lines, [] if plain else finding.evidence)
    raise NotPossible("no line sets requires_grad where it can be seen")


def divide_by_a_count(desk: Desk, finding: Diagnosed) -> str | Patch:
    """Open only where the divisor, which is the last operand, was seen to hold whole numbers."""
    operands = [text for text in finding.evidence if text.startswith("operand: ")]
    if not operands or not re.search(r"whole numbers from 0 .*zeros", operands[-1]):
        raise NotPossible("the divisor is no count")
    return at_the_first(not_finite.divide_by_one_at_least)(desk, finding)


def _made_frozen(source: Source, evidence: str) -> list[int]:
    """Lines that make a parameter without a gradient, under a name that the evidence has."""
    lines = []
    frozen = m.Arg(keyword=m.Name("requires_grad"), value=m.Name("False"))
    for node in source.all(cst.Assign):
        target = node.targets[0].target
        name = target.attr.value if isinstance(target, cst.Attribute) else getattr(target, "value", "")
        arguments = [argument for argument in source.all(cst.Arg, node.value) if m.matches(argument, frozen)]
        if arguments and re.search(rf"(?:^|[\s.,]){re.escape(str(name))}\b", evidence):
            lines.append(source.first_line(arguments[0]))
    return lines


def built_behind_the_model(desk: Desk, finding: Diagnosed) -> str:
    builders = [place for place in finding.where if not re.search("made after|assign=|asked for", place.note)]
    problem = NotPossible("the finding names no line that builds an optimizer")
    for place in builders:
        source = desk.source(place.file)
        others = [other.line for other in finding.where if other is not place and Path(other.file).resolve() == source.path]
        try:
            return params_not_in_optimizer.rewrite(source, place.line, others)
        except NotPossible as found:
            problem = found
            desk.afresh()
    raise problem


def optimizer_asked_for_too_early(desk: Desk, finding: Diagnosed) -> str:
    """The call of the function that builds the optimizer moves; where the lost parameters were made is known by the functions around."""
    changing = set()
    for source, line in desk.lines(finding, note="made after"):
        changing |= {node.name.value for node in source.all(cst.FunctionDef) if source.covers(node, line)}
    for source, line in desk.lines(finding, note="asked for here"):
        return params_not_in_optimizer.rewrite_where_it_is_asked_for(source, line, changing)
    raise NotPossible("the optimizer does not come from a function of the program")


def built_again(desk: Desk, finding: Diagnosed) -> str:
    changing = set()
    for source, line in desk.lines(finding, note="made after"):
        changing |= {node.name.value for node in source.all(cst.FunctionDef) if source.covers(node, line)}
    problem = NotPossible("the finding names no line that keeps an optimizer")
    for source, line in [*desk.lines(finding, note="asked for here"), *desk.lines(finding, note="built from other")]:
        try:
            return params_not_in_optimizer.built_again_behind_the_change(source, line, changing)
        except NotPossible as found:
            problem = found
    raise problem


def cleared_after_use(desk: Desk, finding: Diagnosed) -> str:
    clearing = [place for place in finding.where if "zero_grad" in place.code]
    step = next((place for place in finding.where if re.search(r"\.step\(", place.code) and "zero_grad" not in place.code), None)
    if not clearing:
        if step is None:
            raise NotPossible("the finding names no call of zero_grad")
        return gradients_discarded.rewrite_by_hand(desk.source(step.file), step.line)
    file = clearing[0].file
    lines = [place.line for place in clearing if place.file == file]
    stepping_in = desk.source(step.file) if step is not None else desk.source(file)
    return gradients_discarded.rewrite(desk.source(file), lines, stepping_in, step.line if step is not None else None)


def softmax_of_one(desk: Desk, finding: Diagnosed) -> str:
    for place in finding.where:
        shape = re.search(r"of shape \(([\d, ]+)\) has one element", place.note)
        if shape:
            return softmax.longer_axis(desk.source(place.file), place.line, [int(size) for size in shape.group(1).split(",")])
    raise NotPossible("the softmax does not run over one element")


def softmax_over_the_named_axis(desk: Desk, finding: Diagnosed) -> str:
    for place in finding.where:
        axis = re.search(r"(the classes are|its weights are summed over) axis (\d+)", place.note)
        if axis:
            what = "the classes" if "classes" in axis[1] else "over which its weights are summed"
            return softmax.named_axis(desk.source(place.file), place.line, int(axis[2]), what)
    raise NotPossible("it is not known which axis is meant")


def axes_exchanged(desk: Desk, finding: Diagnosed) -> str:
    order = next((found.group(1) for place in finding.where if (found := re.search(r"`permute\(([\d, ]+)\)`", place.note))), None)
    if order is None:
        raise NotPossible("no view is known to give axes another order")
    axes = [int(axis) for axis in order.split(",")]
    return at_the_first(lambda source, line: loss_arguments.permuted(source, line, axes))(desk, finding)  # type: ignore[return-value]


def through_the_wrapper(desk: Desk, finding: Diagnosed) -> str:
    if not any("past the wrapper" in place.note for place in finding.where):
        raise NotPossible("the wrapper is called")
    return in_the_files(ranks.through_the_wrapper)(desk, finding)  # type: ignore[return-value]


def averaged_by_hand(desk: Desk, finding: Diagnosed) -> str:
    """What is computed past the wrapper cannot be led through it: the gradients are averaged behind backward."""
    if not any("past the wrapper" in place.note for place in finding.where):
        raise NotPossible("the wrapper is called")
    return in_the_files(ranks.average_behind_backward)(desk, finding)  # type: ignore[return-value]


def broadcast_once(desk: Desk, finding: Diagnosed) -> str:
    if any("of the wrapper" in place.note or "past the wrapper" in place.note for place in finding.where):
        raise NotPossible("weights that are made equal once drift apart again where gradients are not shared")
    return in_the_files(ranks.broadcast_before_the_optimizer)(desk, finding)  # type: ignore[return-value]


def read_as_a_copy(desk: Desk, finding: Diagnosed) -> str:
    """Where the store is read, by the name that the evidence gives it."""
    kept = next((found for text in finding.evidence if (found := re.search(r"kept in `([\w.]+)` \((\w+)\)", text))), None)
    if kept is None:
        raise NotPossible("it is not known where the data set keeps its samples")
    name, kind = kept[1].rpartition(".")[2], kept[2]
    for source in desk.sources_and_imports(finding):
        reads = [
            node for node in source.all(cst.Subscript)
            if m.matches(node.value, m.Attribute(attr=m.Name(name))) and _is_read(source, node)
        ]  # fmt: skip
        for node in reads:
            if kind == "list":
                add_import(source, "import copy", "copy")
            rewrite_as(source, node, {"tensor": "{x}.clone()", "array": "{x}.copy()", "list": "copy.deepcopy({x})"}[kind], x=node)
        if reads:
            lines = ", ".join(str(source.first_line(node)) for node in reads)
            return f"what is read from {kept[1]} is a copy (line {lines}), so that nothing that follows changes the store"
    for source, line in list(desk.lines(finding, note="is read here")):
        reader = source.statement_at(line)
        views = [call for call in source.all(cst.Call, reader) if called_name(call) in ("from_numpy", "as_tensor", "frombuffer")]
        for call in views:
            rewrite_as(source, call, "{x}.clone()", x=call)
        if views:
            return f"line {source.first_line(views[0])} makes a tensor of its own, so that nothing that follows changes the store"
    raise NotPossible(f"no line of these files reads {kept[1]}")


def _is_read(source: Source, node: cst.Subscript) -> bool:
    """In a function other than the one that builds the object, and not on the left of an assignment."""
    function = source.enclosing(node, cst.FunctionDef)
    written = isinstance(source.parent(node), (cst.AssignTarget, cst.AugAssign))
    return function is not None and function.name.value != "__init__" and not written


def wake(desk: Desk, finding: Diagnosed) -> str:
    return at_the_first(eval_in_training.wake_before_forward, code=r"^(?!.*(\.eval\(\)|\.train\(False\)))")(desk, finding)  # type: ignore[return-value]


def predictions_over_the_classes(desk: Desk, finding: Diagnosed) -> str | Patch:
    shape = next((found.group(1) for text in finding.evidence if (found := re.search(r"have the shape \(([\d, ]+)\), with the classes", text))), "")
    if shape.count(",") < 2:
        raise NotPossible("the scores have no axis beside the samples and the classes")
    return in_what_they_import(metric_code.over_the_classes(1))(desk, finding)


def own_counter(desk: Desk, finding: Diagnosed) -> str | Patch:
    if any("the higher step" in place.note for place in finding.where):
        raise NotPossible("two lines give the steps of one name")
    return at_the_first(log_calls.own_counter, note="starts again")(desk, finding)
