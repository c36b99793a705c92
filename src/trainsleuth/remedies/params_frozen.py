"""Cures `stall/params-frozen`: the line that freezes is taken out, or narrowed where it is plain what was meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.source import NotPossible, Source, everything, is_method_call

WRAPPERS = ("module.", "_orig_mod.", "model.", "_fsdp_wrapped_module.")
NOT_TRUE = m.Name("False") | m.Integer("0")


def rewrite(source: Source, lines: Sequence[int], evidence: Sequence[str]) -> str:
    """Change the lines that freeze; says what was done."""
    said = [_rewrite_line(source, line, " ".join(evidence)) for line in dict.fromkeys(lines)]
    return "; ".join(dict.fromkeys(said))


def call_what_was_set(source: Source, line: int) -> str:
    """`module.requires_grad = True` becomes `module.requires_grad_(True)`."""
    statement = source.statement_at(line)
    for node in everything(statement):
        if isinstance(node, cst.Assign) and source.first_line(node) == line and len(node.targets) == 1 and _sets_requires_grad(node):
            target = cst.ensure_type(node.targets[0].target, cst.Attribute)
            source.replace(node, cst.Expr(cst.parse_expression(f"{source.code(target.value)}.requires_grad_({source.code(node.value)})")))
            return f"line {line} calls requires_grad_, which reaches the module's parameters"
    raise NotPossible(f"{source.path.name}:{line} does not set requires_grad in a plain assignment")


def _rewrite_line(source: Source, line: int, evidence: str) -> str:
    statement = source.statement_at(line)
    narrowed = _through_a_wrapper(source, statement, evidence) or _part_of_a_name(source, statement, evidence)
    if narrowed:
        return narrowed
    for node in everything(statement):
        if source.first_line(node) > line or not source.covers(node, line):
            continue
        if isinstance(node, (cst.Assign, cst.AnnAssign)) and _sets_requires_grad(node):
            return _out(source, node, line)
        if isinstance(node, cst.Expr) and (is_method_call(node.value, "requires_grad_") or _is_setattr(node.value)):
            return _out(source, node, line)
        if isinstance(node, cst.Call) and is_method_call(node, "requires_grad_") and isinstance(node.func, cst.Attribute):
            source.replace(node, node.func.value)
            return f"line {line} no longer calls requires_grad_(False)"
        if isinstance(node, cst.Arg) and m.matches(node, m.Arg(keyword=m.Name("requires_grad"), value=NOT_TRUE)):
            return _drop_argument(source, node, line)
    raise NotPossible(f"{source.path.name}:{line} does not set requires_grad itself")


def _out(source: Source, node: cst.CSTNode, line: int) -> str:
    source.remove(node)
    return f"line {line} no longer freezes; freeze by module if a part should stay as it is"


def _sets_requires_grad(node: cst.Assign | cst.AnnAssign) -> bool:
    targets = [target.target for target in node.targets] if isinstance(node, cst.Assign) else [node.target]
    return all(m.matches(target, m.Attribute(attr=m.Name("requires_grad"))) for target in targets)


def _is_setattr(node: cst.CSTNode) -> bool:
    return m.matches(node, m.Call(func=m.Name("setattr"), args=[m.Arg(), m.Arg(value=m.SimpleString()), m.Arg()])) and (
        "requires_grad" in cst.Module([]).code_for_node(node)
    )


def _drop_argument(source: Source, node: cst.Arg, line: int) -> str:
    call = source.parent(node)
    assert isinstance(call, cst.Call)
    left = [argument for argument in call.args if argument is not node]
    if left:
        left[-1] = left[-1].with_changes(comma=call.args[-1].comma)
    source.changes[call] = lambda updated: updated.with_changes(args=left)
    return f"line {line} makes the parameter trainable"


def _through_a_wrapper(source: Source, statement: cst.CSTNode, evidence: str) -> str:
    """A filter by `name.startswith("encoder.")` that a wrapper defeats, because all names begin with `module.` there."""
    loop = source.enclosing(statement, cst.For)
    scope = loop.body if loop is not None else statement
    for call in everything(scope):
        if not isinstance(call, cst.Call) or not is_method_call(call, "startswith") or not isinstance(call.func, cst.Attribute):
            continue
        wanted = [str(text.evaluated_value) for text in everything(call) if isinstance(text, cst.SimpleString)]
        for wrapper in WRAPPERS:
            if any(re.search(rf"(?<![\w.]){re.escape(wrapper + prefix)}", evidence) for prefix in wanted):
                stripped = cst.parse_expression(f'{source.code(call.func.value)}.removeprefix("{wrapper}")')
                source.replace(call.func.value, stripped)
                return f"names are compared without the wrapper's prefix {wrapper!r}"
    return ""


def _part_of_a_name(source: Source, statement: cst.CSTNode, evidence: str) -> str:
    """A filter by `"embed" in name` that was meant for the module `embed`, and also matches `embed_out`."""
    names = [name.split(".") for name in re.findall(r"[\w.]+", evidence)]
    for test in (found.test for found in source.above(statement) if isinstance(found, cst.If)):
        for node in everything(test):
            if not m.matches(node, m.Comparison(left=m.SimpleString(), comparisons=[m.ComparisonTarget(operator=m.In())])):
                continue
            assert isinstance(node, cst.Comparison)
            assert isinstance(node.left, cst.SimpleString)
            word, searched = str(node.left.evaluated_value), node.comparisons[0].comparator
            exact = [parts for parts in names if word in parts[:-1]]
            by_accident = [parts for parts in names if word in ".".join(parts) and word not in parts]
            if exact and by_accident and isinstance(searched, cst.Name):
                source.replace(searched, cst.parse_expression(f'{searched.value}.split(".")'))
                return f"only the module {word!r} itself is frozen, not every name that contains the word"
    return ""
