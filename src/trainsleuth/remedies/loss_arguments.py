"""Cures at the call of a loss: its two sides get the same shape, its labels the right range, its axes the right order."""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.desk import Desk, Diagnosed, Way
from trainsleuth.remedies.expressions import argument, called, calls_at, drop_argument, grouped, number_of, put_on, rewrite_as
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, names_in

SHAPES = re.compile(r"\((\d+(?:, ?\d+)*),?\)")


def loss_call(source: Source, line: int) -> tuple[cst.Call, cst.Arg, cst.Arg]:
    """The call at a line that compares two things, and these two."""
    for call in calls_at(source, line):
        first, second = argument(call, 0, "input", "log_probs"), argument(call, 1, "target", "targets", "labels")
        if (
            first is None
            or second is None
            or called_name(call) in ("zip", "range", "print", "isinstance", "getattr", "setattr", "append")
        ):
            continue
        text = source.code(call.func).lower()
        if re.search(r"loss|criterion|entropy|crit\b|ce\b|bce|mse|nll|l1|objective|huber", text) or _is_a_loss(source, call):
            return call, first, second
    raise NotPossible(f"{source.path.name}:{line} does not call a loss with predictions and targets itself")


def _is_a_loss(source: Source, call: cst.Call) -> bool:
    """A name that was given one of torch's losses."""
    name = source.code(call.func)
    return any(
        isinstance(node.value, cst.Call)
        and called_name(node.value).endswith("Loss")
        and source.code(node.targets[0].target) == name
        for node in source.all(cst.Assign)
    )


def same_shape(desk: Desk, finding: Diagnosed) -> str:
    """`(B, 1)` against `(B,)`: the side with the extra axis loses it."""
    shapes = [tuple(int(part) for part in found.split(",") if part.strip())
              for text in finding.evidence for found in SHAPES.findall(text)]  # fmt: skip
    if len(shapes) < 2:
        raise NotPossible("the shapes are not known")
    left, right = shapes[0], shapes[1]
    problem = NotPossible("the finding names no line of a loss")
    for source, line in list(desk.lines(finding)):
        try:
            return _squeeze(source, line, left, right)
        except NotPossible as found:
            problem = found
    raise problem


def _squeeze(source: Source, line: int, left: tuple[int, ...], right: tuple[int, ...]) -> str:
    try:
        _, first, second = loss_call(source, line)
    except NotPossible:
        return _squeeze_difference(source, line, left, right)
    for shape, other, side in ((left, right, first), (right, left, second)):
        if len(shape) == len(other) + 1 and shape[-1] == 1:
            put_on(source, side.value, "squeeze(-1)")
            return f"line {line} compares one prediction with one target: {source.code(side.value)} loses its last axis"
    raise NotPossible(f"shapes {left} and {right} need a decision")


def _squeeze_difference(source: Source, line: int, left: tuple[int, ...], right: tuple[int, ...]) -> str:
    """`(prediction - target) ** 2` by hand: both sides become plain rows."""
    if {len(left), len(right)} != {1, 2} or left[0] != right[0]:
        raise NotPossible(f"shapes {left} and {right} need a decision")
    for node in everything(source.statement_at(line)):
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract):
            put_on(source, node.left, "reshape(-1)")
            put_on(source, node.right, "reshape(-1)")
            return f"line {line} subtracts row from row, one target from one prediction"
    raise NotPossible(f"{source.path.name}:{line} holds no difference of predictions and targets")


def shift_labels(source: Source, line: int) -> str:
    """Labels that are counted from 1 are counted from 0 at the loss."""
    _, _, second = loss_call(source, line)
    rewrite_as(source, second.value, "{x} - 1", x=grouped(second.value))
    return f"line {line} counts the classes from 0: {source.code(second.value)} - 1"


def when(pattern: str, way: Way) -> Way:
    """A way that is open only where the evidence says so."""

    def guarded(desk: Desk, finding: Diagnosed) -> object:
        if not any(re.search(pattern, text) for text in finding.evidence):
            raise NotPossible("the evidence does not show a form of it that has a safe rewrite")
        return way(desk, finding)

    return guarded  # type: ignore[return-value]


def divide_masks(source: Source, line: int) -> str:
    """Masks of 0 and 255 become 0 and 1."""
    _, _, second = loss_call(source, line)
    rewrite_as(source, second.value, "{x} / 255", x=grouped(second.value))
    return f"line {line} gets targets between 0 and 1: {source.code(second.value)} / 255"


def signs_to_probabilities(source: Source, line: int) -> str:
    """Targets of -1 and 1 become 0 and 1."""
    _, _, second = loss_call(source, line)
    rewrite_as(source, second.value, "({x} + 1) / 2", x=grouped(second.value))
    return f"line {line} gets targets of 0 and 1: ({source.code(second.value)} + 1) / 2"


def log_of_probabilities(source: Source, line: int) -> str:
    """Cross entropy of the logarithm of probabilities is what cross entropy of their logits is."""
    _, first, _ = loss_call(source, line)
    put_on(source, first.value, "clamp(min=1e-8).log()")
    return f"line {line} gets the logarithm of the probabilities, which a softmax leaves as it is"


def ignore_nothing(source: Source, line: int) -> str:
    """`ignore_index` that names a real class is left at its default."""
    here = [call for call in calls_at(source, line) if argument(call, None, "ignore_index") is not None]
    known = [call for call in source.all(cst.Call) if argument(call, None, "ignore_index") is not None]
    for call in here or known:
        given = argument(call, None, "ignore_index")
        if given is not None and (number_of(given.value) or 0) >= 0 and (here or len(known) == 1):
            drop_argument(source, call, given)
            return f"line {source.first_line(call)} ignores no class any more"
    raise NotPossible("no line sets ignore_index")


def classes_on_axis_one(source: Source, line: int) -> str:
    """Cross entropy takes axis 1 for the classes: both sides of (batch, time, class) are turned."""
    _, first, second = loss_call(source, line)
    put_on(source, first.value, "transpose(1, 2)")
    put_on(source, second.value, "transpose(1, 2)")
    return f"line {line} has the classes on axis 1, where the loss looks for them"


def argmax_over_classes(source: Source, line: int) -> str:
    """An argmax over axis 0 runs over axis 1: at the line, or the only one of its file."""
    found = [call for call in calls_at(source, line, "argmax", "max") if _over_the_batch(call)]
    if not found:
        found = [call for call in called(source, "argmax") if _over_the_batch(call)]
    if len(found) != 1:
        raise NotPossible("no argmax over the batch was found")
    call = found[0]
    given = _axis(call)
    if given is None:
        raise NotPossible("the axis of the argmax is not written out")
    rewrite_as(source, given.value, "1")
    return f"the argmax in line {source.first_line(call)} runs over the classes (dim=1)"


def _axis(call: cst.Call) -> cst.Arg | None:
    by_name = argument(call, None, "dim", "axis")
    if by_name is not None:
        return by_name
    position = 1 if isinstance(call.func, cst.Attribute) and m.matches(call.func.value, m.Name("torch") | m.Name("np")) else 0
    return argument(call, position)


def _over_the_batch(call: cst.Call) -> bool:
    given = _axis(call)
    return given is not None and number_of(given.value) == 0


def indices_not_values(source: Source) -> str:
    """`torch.max(onehot, dim=1)[0]` is the largest value; `[1]` is where it stands."""
    found = []
    for node in source.all(cst.Subscript):
        inner = node.value
        if isinstance(inner, cst.Call) and called_name(inner) == "max" and _axis(inner) is not None and len(node.slice) == 1:
            index = node.slice[0].slice
            if isinstance(index, cst.Index) and number_of(index.value) == 0:
                found.append((node, index))
    if len(found) != 1:
        raise NotPossible("no line takes the largest values where their places are meant")
    node, index = found[0]
    rewrite_as(source, index.value, "1")
    return f"line {source.first_line(node)} takes the place of the largest value, not the value"


def ignore_the_padding(source: Source) -> str:
    """`labels[mask == 1] = -100` ignores what should be learnt: the mask is asked the other way round."""
    found = []
    for node in source.all(cst.Assign):
        target = node.targets[0].target
        if number_of(node.value) != -100 or not isinstance(target, cst.Subscript) or len(target.slice) != 1:
            continue
        index = target.slice[0].slice
        test = index.value if isinstance(index, cst.Index) else None
        if (
            isinstance(test, cst.Comparison)
            and len(test.comparisons) == 1
            and number_of(test.comparisons[0].comparator) in (0, 1)
        ):
            found.append(test)
    if len(found) != 1:
        raise NotPossible("no line marks labels to be ignored by a mask")
    other = found[0].comparisons[0].comparator
    rewrite_as(source, other, str(1 - int(number_of(other) or 0)))
    return f"line {source.first_line(found[0])} ignores the other side of the mask"


def padding_by_the_mask(source: Source) -> str:
    """`labels[labels == pad] = -100` leaves out the end of the text, too, where that is the same token: the attention mask tells them apart."""
    for node in source.all(cst.Assign):
        target = node.targets[0].target
        if number_of(node.value) != -100 or not isinstance(target, cst.Subscript) or len(target.slice) != 1:
            continue
        test = target.slice[0].slice.value if isinstance(target.slice[0].slice, cst.Index) else None
        home = source.enclosing(node, cst.FunctionDef)
        if not isinstance(test, cst.Comparison) or source.code(test.left) != source.code(target.value) or home is None:
            continue
        masks = [name for name in sorted(names_in(home), key=len, reverse=True) if "mask" in name]
        entries = [source.code(part) for part in source.all(cst.Subscript, home) if re.search(r"""\[["']attention_mask["']\]$""", source.code(part))]
        if masks or entries:
            source.replace(test, cst.parse_expression(f"{[*entries, *masks][0]} == 0"))
            return f"line {source.first_line(node)} leaves out what the attention mask does, and not the end of the text"
    raise NotPossible("no line leaves labels out by the token of the padding, beside an attention mask")


def in_full_precision(source: Source, line: int) -> str:
    """The loss gets its input in 32 bit."""
    _, first, _ = loss_call(source, line)
    put_on(source, first.value, "float()")
    return f"the loss in line {line} is computed in 32 bit"


def permuted(source: Source, line: int, order: list[int]) -> str:
    """A view or reshape to a shape of the same axes in another order becomes a permute."""
    views = [call for call in calls_at(source, line, "view", "reshape") if isinstance(call.func, cst.Attribute) and call.args]
    found = [call for call in views if len(call.args) == len(order)] or [call for call in views if _a_whole_shape(call)]
    if len(found) != 1:
        raise NotPossible(f"no single view in {source.path.name}:{line} has {len(order)} axes written out")
    call = found[0]
    assert isinstance(call.func, cst.Attribute)
    rewrite_as(source, call, f"{{x}}.permute({', '.join(map(str, order))})", x=call.func.value)
    return f"line {source.first_line(call)} exchanges the axes (permute), which a {called_name(call)} does not"


def _a_whole_shape(call: cst.Call) -> bool:
    """`view(logits.shape)`, `view(x.size())`, `view((b, c, h, w))`, `view(b, *sizes)`."""
    starred = any(given.star for given in call.args)
    return starred or (len(call.args) == 1 and isinstance(call.args[0].value, (cst.Name, cst.Attribute, cst.Call, cst.Tuple, cst.List)))
