"""Cures of the family `nan`: the operation that made the first NaN or infinity gets an input that it can bear."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from trainsleuth.remedies.expressions import (
    argument,
    called,
    calls_at,
    functional,
    is_true,
    number_of,
    put_on,
    rewrite_as,
    set_argument,
    text_of,
)
from trainsleuth.remedies.source import NotPossible, Source, Statement, called_name, everything

LIBRARIES = (
    "torch",
    "F",
    "nn.functional",
    "torch.nn.functional",
    "functional",
    "torch.special",
    "torch.linalg",
    "np",
    "numpy",
    "math",
)
WIDE_SUMS = ("exp", "pow", "square", "sum", "norm", "cumsum", "prod", "mean")
TINY, TINIER = "1e-8", "1e-12"
LEAST_OF_LOG = {"log": TINY, "log2": TINY, "log10": TINY, "log1p": "1e-6 - 1"}
INFINITY = r"""float\(["']-inf["']\)|-\s*(math|np|torch)\.inf|-\s*float\(["']inf["']\)"""


def _operand(source: Source, call: cst.Call) -> cst.BaseExpression | None:
    """What a function or method of tensors works on: `x` of `torch.log(x)` and of `x.log()`."""
    if isinstance(call.func, cst.Attribute) and source.code(call.func.value) not in LIBRARIES:
        return call.func.value
    given = argument(call, 0, "input")
    return given.value if given is not None else None


def _pieces(source: Source, line: int, *names: str) -> list[tuple[cst.Call, cst.BaseExpression]]:
    found = [(call, _operand(source, call)) for call in calls_at(source, line, *names)]
    return [(call, operand) for call, operand in found if operand is not None]


def log_of_softmax(source: Source, line: int) -> str:
    """`log(softmax(z, dim))` becomes `log_softmax(z, dim)`, which never meets a zero."""
    for call, operand in _pieces(source, line, "log"):
        inner = _without_an_epsilon(operand)
        if isinstance(inner, cst.Call) and called_name(inner) in ("softmax", "sigmoid"):
            new = "log_softmax" if called_name(inner) == "softmax" else "logsigmoid"
            logits = _operand(source, inner)
            if logits is None:
                continue
            axis = argument(inner, 0 if logits is not (inner.args[0].value if inner.args else None) else 1, "dim", "axis")
            where = "" if new == "logsigmoid" else f", dim={source.code(axis.value) if axis is not None else '-1'}"
            rewrite_as(source, call, f"{functional(source)}.{new}({{x}}{where})", x=logits)
            return f"line {line} takes {new}, which is finite for every input"
    raise NotPossible(f"{source.path.name}:{line} takes no logarithm of a softmax")


def _without_an_epsilon(node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add) and number_of(node.right) is not None:
        return node.left
    return node


def log_not_of_zero(source: Source, line: int) -> str:
    """Every logarithm of the statement gets an input that it bears, and so does each of the same operand in the same function."""
    found = _pieces(source, line, *LEAST_OF_LOG)
    if not found:
        raise NotPossible(f"{source.path.name}:{line} takes no logarithm itself")
    alike = {(called_name(call), source.code(operand)) for call, operand in found}
    home = source.enclosing(source.statement_at(line), cst.FunctionDef) or source.module
    lines = set()
    for call in called(source, *LEAST_OF_LOG, below=home):
        operand = _operand(source, call)
        if operand is not None and (called_name(call), source.code(operand)) in alike:
            put_on(source, operand, f"clamp(min={LEAST_OF_LOG[called_name(call)]})")
            lines.add(source.first_line(call))
    least = " and ".join(dict.fromkeys(LEAST_OF_LOG[called_name(call)] for call, _ in found))
    return f"the logarithm in line {', '.join(map(str, sorted(lines)))} gets at least {least}"


def sqrt_not_of_zero(source: Source, line: int) -> str:
    """Its slope is infinite at zero: every root of the statement gets at least 1e-12."""
    for _, operand in _pieces(source, line, "sqrt", "rsqrt"):
        clamp = _clamped_at_zero(source, operand)
        if clamp is not None:
            rewrite_as(source, clamp, TINIER)
        else:
            put_on(source, operand, f"clamp(min={TINIER})")
        return f"the root in line {line} gets at least {TINIER}, where its slope is finite"
    for node in everything(source.statement_at(line)):
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Power) and _is_a_root(node.right):
            put_on(source, node.left, f"clamp(min={TINIER})")
            return f"the root in line {line} gets at least {TINIER}, where its slope is finite"
    for call, operand in _pieces(source, line, "pow"):
        power = argument(call, 0 if operand is not (call.args[0].value if call.args else None) else 1, "exponent")
        if power is not None and _is_a_root(power.value):
            put_on(source, operand, f"clamp(min={TINIER})")
            return f"the root in line {line} gets at least {TINIER}, where its slope is finite"
    raise NotPossible(f"{source.path.name}:{line} takes no root itself")


def _is_a_root(node: cst.CSTNode) -> bool:
    power = number_of(node)
    return power is not None and 0 < power < 1


def _clamped_at_zero(source: Source, node: cst.BaseExpression) -> cst.BaseExpression | None:
    if isinstance(node, cst.Call) and called_name(node) in ("clamp", "clamp_min", "clip"):
        least = argument(node, 0 if _operand(source, node) is not (node.args[0].value if node.args else None) else 1, "min")
        if least is not None and number_of(least.value) == 0:
            return least.value
    return None


def inverse_not_at_one(source: Source, line: int) -> str:
    """acos, asin and atanh have an infinite slope at the ends of their range."""
    for _, operand in _pieces(source, line, "acos", "arccos", "asin", "arcsin", "atanh", "arctanh"):
        put_on(source, operand, "clamp(-1 + 1e-6, 1 - 1e-6)")
        return f"the function in line {line} stays away from the ends of its range"
    raise NotPossible(f"{source.path.name}:{line} takes no inverse of a sine, cosine or tanh")


def divide_by_one_at_least(source: Source, line: int) -> str:
    """A count of things that can be none is at least 1: a tiny number in its place would make huge ones."""
    divisions = _divisions(source, line)
    if not divisions:
        raise NotPossible(f"{source.path.name}:{line} divides by no tensor itself")
    for node in divisions:
        put_on(source, node.right, "clamp(min=1)")
    return f"the count that line {line} divides by is at least 1"


def _divisions(source: Source, line: int) -> list[cst.BinaryOperation]:
    return [
        node for node in everything(source.statement_at(line))
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide) and number_of(node.right) is None
        and not _is_python(source, node.right)
    ]  # fmt: skip


def divide_by_something(source: Source, line: int) -> str:
    """A divisor that can be zero gets at least 1e-8."""
    divisions = _divisions(source, line)
    if not divisions:
        for call, _ in _pieces(source, line, "div", "true_divide", "reciprocal"):
            of_torch = isinstance(call.func, cst.Attribute) and source.code(call.func.value) == "torch"
            given = argument(call, 1 if of_torch else 0, "other")
            if given is not None:
                put_on(source, given.value, f"clamp(min={TINY})")
                return f"the divisor in line {line} is at least {TINY}"
        raise NotPossible(f"{source.path.name}:{line} divides by no tensor itself")
    for node in divisions:
        divisor = node.right
        if _is_a_sum(divisor):
            put_on(source, divisor, f"clamp(min={TINY})")
        else:
            rewrite_as(
                source, divisor, f"({{x}} + {TINY})", x=divisor.with_changes(lpar=[], rpar=[]) if divisor.lpar else divisor
            )
    return f"the divisor in line {line} cannot be zero any more"


def _is_python(source: Source, node: cst.BaseExpression) -> bool:
    """`len(x)`, `x.shape[0]`, `x.size(1)`: plain numbers."""
    return bool(re.search(r"^len\(|\.shape\[|\.size\(|\.numel\(|\.item\(", source.code(node)))


def _is_a_sum(node: cst.BaseExpression) -> bool:
    """Something that is not negative by its making: a sum of a mask, a norm, a standard deviation."""
    return isinstance(node, cst.Call) and called_name(node) in (
        "sum",
        "norm",
        "std",
        "var",
        "abs",
        "count_nonzero",
        "vector_norm",
    )


def guard_inside_where(source: Source, line: int) -> str:
    """Both sides of `where` are computed, and the gradient of the one that is not taken is 0 · inf: guard its input as well."""
    for call in calls_at(source, line, "where"):
        if len(call.args) != 3:
            continue
        condition, first, second = (given.value for given in call.args)
        for side, inverted in ((first, False), (second, True)):
            name = _guarded_name(source, side, condition)
            if name is None:
                continue
            test = source.code(condition)
            safe = (
                f"torch.where({test}, torch.ones_like({name}), {name})"
                if inverted
                else f"torch.where({test}, {name}, torch.ones_like({name}))"
            )
            for node in everything(side):
                if isinstance(node, (cst.Name, cst.Attribute)) and source.code(node) == name and not _is_part(source, node):
                    rewrite_as(source, node, safe)
            return f"line {line} computes the side that is not taken from ones, so that its gradient is finite"
    raise NotPossible(f"no `where` in {source.path.name}:{line} has a form that can be guarded")


def _guarded_name(source: Source, side: cst.BaseExpression, condition: cst.BaseExpression) -> str | None:
    """The name that both the condition and a dangerous operation of the side use."""
    dangerous = [node for node in everything(side)
                 if (isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Divide, cst.Power)))
                 or (isinstance(node, cst.Call) and called_name(node) in
                     ("log", "sqrt", "rsqrt", "pow", "acos", "asin", "atanh", "reciprocal", "norm", "div", "log1p", "exp", "tan"))]  # fmt: skip
    if not dangerous:
        return None
    asked = {source.code(node) for node in everything(condition) if isinstance(node, (cst.Name, cst.Attribute))}
    for node in everything(dangerous[0]):
        text = source.code(node) if isinstance(node, (cst.Name, cst.Attribute)) else ""
        if text in asked and text not in ("torch", "F"):
            return text
    return None


def _is_part(source: Source, node: cst.CSTNode) -> bool:
    """A name that only begins a longer one: `r` of `r.abs`."""
    parent = source.parent(node)
    return isinstance(parent, cst.Attribute) and parent.attr is node


def zero_infinity(source: Source) -> str:
    """CTC gives 0 instead of infinity for targets that do not fit."""
    found = [call for call in called(source, "CTCLoss", "ctc_loss")
             if not is_true(call, 4 if called_name(call) == "CTCLoss" else 6, "zero_infinity")]  # fmt: skip
    if not found:
        raise NotPossible("no CTC loss without zero_infinity in this file")
    for call in found:
        set_argument(source, call, "zero_infinity", "True")
    lines = ", ".join(str(source.first_line(call)) for call in found)
    return f"CTC counts targets that do not fit as 0 (line {lines}); drop these samples, or give the model more frames, to learn from them"


def stable_exponential(source: Source, line: int) -> str:
    """`log(sum(exp(x)))` and `log(1 + exp(x))` have stable forms."""
    for call, operand in _pieces(source, line, "log"):
        if isinstance(operand, cst.Call) and called_name(operand) == "sum":
            inner = _operand(source, operand)
            if isinstance(inner, cst.Call) and called_name(inner) == "exp":
                x = _operand(source, inner)
                axis = argument(operand, None, "dim", "axis") or (
                    operand.args[0] if operand.args and operand.args[0].value is not inner else None
                )
                if x is not None and axis is not None:
                    rewrite_as(source, call, f"torch.logsumexp({{x}}, dim={source.code(axis.value)})", x=x)
                    return f"line {line} takes logsumexp, which does not overflow"
        if isinstance(operand, cst.BinaryOperation) and isinstance(operand.operator, cst.Add):
            sides = [operand.left, operand.right]
            exps = [side for side in sides if isinstance(side, cst.Call) and called_name(side) == "exp"]
            if len(exps) == 1 and any(number_of(side) == 1 for side in sides):
                x = _operand(source, exps[0])
                if x is not None:
                    rewrite_as(source, call, f"{functional(source)}.softplus({{x}})", x=x)
                    return f"line {line} takes softplus, which does not overflow"
    raise NotPossible(f"{source.path.name}:{line} has no exponential with a stable form")


def shifted_exponential(source: Source, line: int) -> str:
    """A softmax by hand, `e = exp(x)`, then `e / e.sum(…)`: the largest is taken off first, which changes nothing but the size."""
    for call, operand in _pieces(source, line, "exp"):
        assign = source.enclosing(call, cst.Assign)
        if assign is None or assign.value is not call:
            continue
        name = source.code(assign.targets[0].target)
        home = source.enclosing(assign, cst.FunctionDef) or source.module
        for total in called(source, "sum", below=home):
            axis = argument(total, 0, "dim", "axis") if _operand(source, total) is not None else None
            if (
                axis is not None
                and source.code(_operand(source, total) or total) == name
                and argument(total, None, "keepdim", "keepdims")
            ):
                text = source.code(operand) if isinstance(operand, (cst.Name, cst.Attribute)) else f"({source.code(operand)})"
                rewrite_as(source, operand, f"{text} - {text}.amax({source.code(axis.value)}, keepdim=True)")
                return f"line {line} takes off the largest value before the exponential, so that it does not overflow"
    raise NotPossible(f"{source.path.name}:{line} is no softmax by hand")


def bounded_exponential(source: Source, line: int) -> str:
    """The argument of exp stays where its result is finite."""
    found = _pieces(source, line, "exp", "expm1", "sinh", "cosh", "exp2")
    if not found:
        raise NotPossible(f"{source.path.name}:{line} takes no exponential itself")
    for _, operand in found:
        put_on(source, operand, "clamp(max=20)")
    return f"the exponential in line {line} gets at most 20"


def finite_mask(source: Source, line: int) -> str:
    """A row of nothing but -inf has no softmax: mask with the lowest finite number instead."""
    near = source.statement_at(line)
    home = source.enclosing(near, cst.FunctionDef) or source.module
    for call in called(source, "masked_fill", "masked_fill_", below=home):
        value = argument(call, 1, "value")
        if value is not None and re.fullmatch(INFINITY, source.code(value.value)) and isinstance(call.func, cst.Attribute):
            scores = source.code(call.func.value)
            lowest = f"torch.finfo({scores}.dtype).min" if isinstance(call.func.value, (cst.Name, cst.Attribute)) else "-1e9"
            rewrite_as(source, value.value, lowest)
            return f"line {source.first_line(call)} masks with the lowest finite number: a row that is masked as a whole has a softmax"
    for call in called(source, "where", "full", "full_like", below=home):
        for given in call.args:
            if re.fullmatch(INFINITY, source.code(given.value)):
                rewrite_as(source, given.value, "-1e9")
                return f"line {source.first_line(call)} masks with -1e9: a row that is masked as a whole has a softmax"
    raise NotPossible("no mask of -inf was found near the softmax")


def rows_that_keep_an_entry(source: Source, line: int) -> str:
    """A mask for an attention module that hides a whole row hides nothing of that row."""
    for call in calls_at(source, line):
        for given in call.args:
            named = given.keyword is not None and given.keyword.value.endswith(("key_padding_mask", "attn_mask", "src_mask"))
            if named and isinstance(given.value, (cst.Name, cst.Attribute, cst.Subscript)):
                rewrite_as(source, given.value, "{x} & ~{x}.all(-1, keepdim=True)", x=given.value)
                return f"line {line}: a row that is masked as a whole keeps its entries"
    raise NotPossible(f"{source.path.name}:{line} gives no mask by its name")


def deviation_of_one(source: Source, line: int) -> str:
    """The deviation of a single sample is 0, not 0 / 0."""
    found = calls_at(source, line, "std", "var", "std_mean", "var_mean")
    if not found:
        raise NotPossible(f"{source.path.name}:{line} takes no standard deviation itself")
    for call in found:
        if argument(call, None, "unbiased") is not None:
            set_argument(source, call, "unbiased", "False")
        else:
            set_argument(source, call, "correction", "0")
    return f"the deviation in line {line} divides by n, not by n - 1: of one sample it is 0"


def drop_the_last_batch(source: Source) -> str:
    """A last batch of one sample is left out."""
    loaders = [call for call in called(source, "DataLoader") if is_true(call, 2, "shuffle")]
    loaders = loaders or called(source, "DataLoader")
    if len(loaders) != 1:
        raise NotPossible("the loader that is trained from was not found")
    set_argument(source, loaders[0], "drop_last", "True")
    return f"the loader in line {source.first_line(loaders[0])} leaves out a last batch that is not full"


def in_full_precision(source: Source, line: int) -> str:
    """The operands of the operation are taken to 32 bit; products of matrices also leave autocast, which would take them back."""
    statement = source.statement_at(line)
    for node in sorted(everything(statement), key=lambda part: not isinstance(part, cst.BinaryOperation)):
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.MatrixMultiply, cst.Power, cst.Multiply)):
            operands = [node.left] if isinstance(node.operator, cst.Power) else [node.left, node.right]
            operands = [operand for operand in operands if number_of(operand) is None]
        elif isinstance(node, cst.Call) and called_name(node) in WIDE_SUMS:
            found = _operand(source, node)
            operands = [] if found is None or text_of(found) is not None or source.code(found) == "self" else [found]
        else:
            continue
        if not operands:
            continue
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
            _without_autocast(source, statement, operands)
        for operand in operands:
            put_on(source, operand, "float()")
        return f"line {line} computes in 32 bit"
    raise NotPossible(f"no operation of {source.path.name}:{line} can be taken to 32 bit by itself")


def _without_autocast(source: Source, statement: Statement, operands: Sequence[cst.BaseExpression]) -> None:
    named = next((operand for operand in operands if isinstance(operand, (cst.Name, cst.Attribute))), None)
    if named is None or not isinstance(statement, cst.SimpleStatementLine):
        raise NotPossible("the product of matrices stands where autocast cannot be switched off for it alone")

    def inside(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.SimpleStatementLine)
        item = cst.WithItem(cst.parse_expression(f"torch.autocast({source.code(named)}.device.type, enabled=False)"))
        return cst.With([item], cst.IndentedBlock([updated.with_changes(leading_lines=[])]), leading_lines=updated.leading_lines)

    source.edit(statement, inside)


def clip_behind_backward(source: Source) -> str:
    """Gradients that are clipped before backward has made them are not clipped: the call moves behind backward."""
    for clip in called(source, "clip_grad_norm_", "clip_grad_value_"):
        statement = source.statement_of(clip)
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        block = source.block_of(statement)
        behind = block[block.index(statement) + 1 :]
        backward = next((other for other in behind if isinstance(other, cst.SimpleStatementLine) and called(source, "backward", below=other)), None)
        if backward is None:
            continue
        between = behind[: behind.index(backward)]
        if any(called(source, "step", below=other) for other in between):
            continue
        source.move_below([statement], backward)
        return f"gradients are clipped behind the backward that makes them (line {source.first_line(backward)}), not before it"
    raise NotPossible("no line clips gradients before backward has made them")


def clip_before_the_step(source: Source) -> str:
    """Gradients are clipped to norm 1 between backward and step."""
    if called(source, "clip_grad_norm_", "clip_grad_value_", "unscale_"):
        raise NotPossible("gradients are clipped already")
    backwards = called(source, "backward")
    models = _trained(source)
    if len(backwards) != 1 or len(models) != 1:
        raise NotPossible("the backward or the model was not found")
    source.after(source.statement_of(backwards[0]), f"torch.nn.utils.clip_grad_norm_({models[0]}.parameters(), 1.0)")
    return f"gradients are clipped to norm 1 after the backward in line {source.first_line(backwards[0])}"


def _trained(source: Source) -> Sequence[str]:
    """The models whose parameters an optimizer of this file takes."""
    found = []
    for call in called(source, "parameters"):
        parent = source.parent(call)
        holder = source.parent(parent) if parent is not None else None
        if isinstance(holder, cst.Call) and argument(holder, None, "lr") is not None and isinstance(call.func, cst.Attribute):
            found.append(source.code(call.func.value))
    return list(dict.fromkeys(found))
