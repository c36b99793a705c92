"""Small questions about expressions, and small edits of them: arguments of calls, methods put on, branches taken away."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m
from libcst.helpers import parse_template_expression

from trainsleuth.remedies.source import NotPossible, Source, Statement, called_name, everything

SIMPLE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)


def calls_at(source: Source, line: int, *names: str) -> list[cst.Call]:
    """Calls with one of these names in the statement of a line, outer before inner; those that touch the line come first."""
    statement = source.statement_at(line)
    parts = list(everything(statement)) if not _is_block(statement) else list(_head(statement))
    found = [node for node in parts if isinstance(node, cst.Call) and (not names or called_name(node) in names)]
    return sorted(found, key=lambda call: not source.covers(call, line))


def _is_block(statement: Statement) -> bool:
    return isinstance(statement, cst.BaseCompoundStatement)


def _head(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What a compound statement says before its block begins."""
    for child in statement.children:
        if not isinstance(child, (cst.BaseSuite, cst.Else, cst.Finally, cst.ExceptHandler)):
            yield from everything(child)


def called(source: Source, *names: str, below: cst.CSTNode | None = None) -> list[cst.Call]:
    return [call for call in source.all(cst.Call, below) if called_name(call) in names]


def argument(call: cst.Call, position: int | None, *keywords: str) -> cst.Arg | None:
    """An argument by its keyword, else by its position."""
    for given in call.args:
        if given.keyword is not None and given.keyword.value in keywords:
            return given
    plain = [given for given in call.args if given.keyword is None and not given.star]
    return plain[position] if position is not None and 0 <= position < len(plain) else None


def set_argument(source: Source, call: cst.Call, keyword: str, value: str) -> None:
    """Give a call this keyword argument, in place of one that it has."""
    known = argument(call, None, keyword)
    if known is not None:
        source.replace(known.value, cst.parse_expression(value))
        return
    if any(given.star == "**" for given in call.args):
        raise NotPossible(f"{source.code(call.func)} gets its settings from a dictionary")
    new = cst.Arg(
        value=cst.parse_expression(value),
        keyword=cst.Name(keyword),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )

    def add(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.Call)
        args = list(updated.args)
        if not args:
            return updated.with_changes(args=[new])
        end = args[-1].comma
        between = args[-2].comma if len(args) > 1 else cst.MaybeSentinel.DEFAULT
        if len(args) == 1 and isinstance(end, cst.Comma):
            between = end.with_changes(whitespace_after=updated.whitespace_before_args)
        args[-1] = args[-1].with_changes(comma=between)
        return updated.with_changes(args=[*args, new.with_changes(comma=end)])

    source.edit(call, add)


def drop_argument(source: Source, call: cst.Call, given: cst.Arg) -> None:
    """Take an argument of a call away; what was decided for the others stays."""
    at = next(index for index, known in enumerate(call.args) if known is given)

    def drop(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.Call)
        left = [*updated.args[:at], *updated.args[at + 1 :]]
        if left:
            left[-1] = left[-1].with_changes(comma=updated.args[-1].comma)
        return updated.with_changes(args=left)

    source.edit(call, drop)


def is_true(call: cst.Call, position: int | None, *keywords: str) -> bool:
    """Whether this argument is written out as True."""
    given = argument(call, position, *keywords)
    return given is not None and m.matches(given.value, m.Name("True"))


def number_of(node: cst.CSTNode | None) -> float | None:
    """The value of a number that is written out, of `2.0**40` and of `-1` too."""
    if isinstance(node, (cst.Integer, cst.Float)):
        return float(node.evaluated_value)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = number_of(node.expression)
        return None if inner is None else -inner
    if isinstance(node, cst.BinaryOperation):
        left, right = number_of(node.left), number_of(node.right)
        if left is not None and right is not None and abs(right) < 400:
            if isinstance(node.operator, cst.Power):
                return float(left**right)
            if isinstance(node.operator, cst.Multiply):
                return left * right
    return None


def text_of(node: cst.CSTNode | None) -> str | None:
    """The value of a text that is written out."""
    return str(node.evaluated_value) if isinstance(node, cst.SimpleString) else None


def grouped(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression in parentheses, unless it binds tightly by itself."""
    if isinstance(node, SIMPLE) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def put_on(source: Source, node: cst.BaseExpression, text: str) -> None:
    """`x` becomes `x.text`, `a + b` becomes `(a + b).text`; what is changed within stays changed."""
    source.edit(node, lambda updated: parse_template_expression("{x}." + text, x=grouped(updated)))  # type: ignore[arg-type]


def rewrite_as(source: Source, node: cst.BaseExpression, template: str, **parts: cst.BaseExpression) -> None:
    """Replace an expression by a template with parts of it."""
    source.replace(node, parse_template_expression(template, **parts))  # type: ignore[arg-type]


def torch_nn(source: Source) -> str:
    """How this file names torch.nn."""
    return _module_name(source, "torch.nn", "nn") or "torch.nn"


def functional(source: Source) -> str:
    return _module_name(source, "torch.nn.functional", "functional") or f"{torch_nn(source)}.functional"


def _module_name(source: Source, dotted: str, last: str) -> str:
    package = dotted.rpartition(".")[0]
    for node in source.all(cst.BaseSmallStatement):  # type: ignore[type-abstract]
        if isinstance(node, cst.Import):
            for alias in node.names:
                if source.code(alias.name) == dotted and alias.asname is not None:
                    return source.code(alias.asname.name)
        if isinstance(node, cst.ImportFrom) and node.module is not None and not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                if source.code(node.module) == package and source.code(alias.name) == last:
                    return source.code(alias.asname.name) if alias.asname is not None else last
    return ""


def imported(source: Source, name: str) -> bool:
    """Whether a name is imported at the top of the file."""
    for node in source.all(cst.BaseSmallStatement):  # type: ignore[type-abstract]
        if isinstance(node, (cst.Import, cst.ImportFrom)) and not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                if (
                    source.code(alias.asname.name) if alias.asname is not None else source.code(alias.name).split(".")[0]
                ) == name:
                    return True
    return False


def add_import(source: Source, text: str, name: str) -> None:
    """Import a name behind the other imports of the file, unless it is imported already."""
    if imported(source, name):
        return
    tops = [node for node in source.module.body if isinstance(node, cst.SimpleStatementLine)
            and any(isinstance(part, (cst.Import, cst.ImportFrom)) for part in node.body)]  # fmt: skip
    if not tops:
        raise NotPossible("the file imports nothing")
    source.after(tops[-1], text)


def loop_around(source: Source, node: cst.CSTNode) -> cst.For | cst.While | None:
    """The innermost loop around a node, within its function."""
    for above in source.above(node):
        if isinstance(above, (cst.For, cst.While)):
            return above
        if isinstance(above, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            return None
    return None


def iterated(loop: cst.For) -> cst.BaseExpression:
    """What a loop goes over, without enumerate, tqdm and the like around it."""
    found = loop.iter
    while (
        isinstance(found, cst.Call)
        and called_name(found) in ("enumerate", "tqdm", "trange", "track", "iter", "prefetch")
        and found.args
    ):
        found = found.args[0].value
    return found


def unwrap(source: Source, block: cst.If | cst.With) -> None:
    """A block's statements take the block's place, one level to the left."""
    if isinstance(block, cst.If) and (block.orelse is not None or _is_elif(source, block)):
        raise NotPossible("the branch has another side")
    if not isinstance(block.body, cst.IndentedBlock):
        raise NotPossible("the block stands on one line")

    def out(updated: cst.CSTNode) -> cst.FlattenSentinel[cst.CSTNode]:
        assert isinstance(updated, (cst.If, cst.With))
        assert isinstance(updated.body, cst.IndentedBlock)
        statements = list(updated.body.body)
        statements[0] = statements[0].with_changes(
            leading_lines=[*updated.leading_lines, *getattr(statements[0], "leading_lines", ())]
        )
        return cst.FlattenSentinel(statements)

    source.edit(block, out)


def _is_elif(source: Source, block: cst.If) -> bool:
    above = source.parent(block)
    return isinstance(above, cst.If) and above.orelse is block


def function_or_module(source: Source, node: cst.CSTNode) -> cst.CSTNode:
    return source.enclosing(node, cst.FunctionDef) or source.module


def names_read(source: Source, *below: cst.CSTNode) -> list[cst.Name]:
    """Names that are looked up in these nodes: no attributes, keywords or parameters, and nothing that is given a value there."""
    return [node for start in below for node in everything(start) if isinstance(node, cst.Name) and _is_looked_up(source, node)]


def _is_looked_up(source: Source, node: cst.Name) -> bool:
    above = source.parent(node)
    if isinstance(above, cst.Attribute):
        return above.value is node
    if isinstance(above, cst.Arg):
        return above.value is node
    return not isinstance(above, (cst.Param, cst.FunctionDef, cst.ClassDef, cst.ImportAlias, cst.NameItem)) and not is_bound(source, node)


def is_bound(source: Source, node: cst.BaseExpression) -> bool:
    """Whether a name or an attribute is given a value here, also as a part of a tuple."""
    inner: cst.CSTNode = node
    above = source.parent(inner)
    while isinstance(above, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
        inner, above = above, source.parent(above)
    if isinstance(above, (cst.For, cst.CompFor, cst.AnnAssign, cst.NamedExpr, cst.AugAssign)):
        return above.target is inner
    return isinstance(above, (cst.AssignTarget, cst.AsName, cst.Param))


def assignments(source: Source, below: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What is given a value in a part of the file, with its value; of `a, b = x, y` each by itself."""
    for node in source.all(cst.BaseSmallStatement, below):  # type: ignore[type-abstract]
        if isinstance(node, cst.AnnAssign) and node.value is not None:
            yield node.target, node.value
        if not isinstance(node, cst.Assign):
            continue
        for target in node.targets:
            left, right = target.target, node.value
            both = isinstance(left, (cst.Tuple, cst.List)) and isinstance(right, (cst.Tuple, cst.List))
            if both and len(left.elements) == len(right.elements):  # type: ignore[attr-defined]
                yield from ((a.value, b.value) for a, b in zip(left.elements, right.elements))  # type: ignore[attr-defined]
            else:
                yield left, right
