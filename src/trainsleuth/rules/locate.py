"""Names a line more closely once the facts have shown the fault: looks near the known places for the expression that does it.

The source is never evidence of a fault; it only tells where, in the function that is known to be concerned, the thing stands.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator, Sequence

from trainsleuth.case.entries import Place

Match = Callable[[ast.AST], bool]


def _attribute(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in names


def _called(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and (
        _attribute(node.func, *names) or (isinstance(node.func, ast.Name) and node.func.id in names)
    )


def _bare_step(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and _attribute(node.value, "step")


def _bare_clearing(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and _attribute(node.value, "zero_grad", "zero_")


def _bare_eval(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and _attribute(node.value, "eval")


def _clears(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return any(_attribute(target, "grad") for target in node.targets)
    return _called(node, "zero_grad") or (_called(node, "zero_", "fill_") and isinstance(node, ast.Call) and
                                          isinstance(node.func, ast.Attribute) and _attribute(node.func.value, "grad"))  # fmt: skip


def _sets_rate(node: ast.AST) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return any(isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Constant) and t.slice.value == "lr" for t in targets)


def _difference(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)


def _plain_difference(node: ast.AST) -> bool:
    """Of two things, with no number among them."""
    return _difference(node) and not any(isinstance(child, ast.Constant) and isinstance(child.value, (int, float)) for child in ast.walk(node))


def _squared_difference(node: ast.AST) -> bool:
    squared = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    return (squared or _called(node, "pow", "square", "abs")) and any(_plain_difference(child) for child in ast.walk(node))


def _no_grad(node: ast.AST) -> bool:
    inside = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
    return any(_called(expression, "no_grad", "inference_mode", "set_grad_enabled") for expression in inside)


def _requires_grad(node: ast.AST, value: bool) -> bool:
    return isinstance(node, ast.Call) and any(
        keyword.arg == "requires_grad" and isinstance(keyword.value, ast.Constant) and keyword.value.value is value
        for keyword in node.keywords
    )


def _computed_from_a_parameter(node: ast.AST) -> bool:
    """`self.weight = nn.Parameter(x).t()`: what is assigned is a tensor, and the parameter is nobody's."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute) or _called(node.value, "Parameter"):
        return False
    return isinstance(node.value, (ast.Call, ast.BinOp)) and any(_called(part, "Parameter") for part in ast.walk(node.value))


def _draws(node: ast.AST) -> bool:
    """A call of something that is reached through a module named random: random.random(), np.random.rand(), rng of either."""
    return isinstance(node, ast.Call) and any(
        (isinstance(part, ast.Name) and part.id == "random") or _attribute(part, "random") for part in ast.walk(node.func)
    )


def _made_half(node: ast.AST) -> bool:
    """`.half()`, `.bfloat16()`, or a call other than autocast that is given a type of 16 bit."""
    if not isinstance(node, ast.Call) or _called(node, "autocast"):
        return False
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    named = any(_attribute(value, "float16", "bfloat16", "half") for value in given)
    return named or (not given and _attribute(node.func, "half", "bfloat16"))


SEARCHES: dict[str, tuple[str, tuple[Match, ...]]] = {
    "step": ("the step stands here", (_bare_step, lambda node: _called(node, "step"))),
    "bare-clear": ("is named, and not called", (_bare_clearing,)),
    "bare-eval": ("is named, and not called", (_bare_eval,)),
    "clear": ("clears gradients that no step has used", (_clears,)),
    "softmax": ("the softmax", (lambda node: _called(node, "softmax", "log_softmax", "Softmax", "LogSoftmax", "Softmax2d"),)),
    "view": ("gives the axes another order", (lambda node: _called(node, "view", "reshape"),)),
    "sigmoid": ("the sigmoid", (lambda node: _called(node, "sigmoid", "Sigmoid"),)),
    "argmax": ("the argmax", (lambda node: _called(node, "argmax", "max"),)),
    "difference": ("the difference", (_squared_difference, _plain_difference, _difference)),
    "rate": ("sets the learning rate", (_sets_rate,)),
    "no_grad": ("gradients are off here", (_no_grad,)),
    "frozen": ("made frozen", (lambda node: _requires_grad(node, False),)),
    "random": ("draws a random number", (_draws,)),
    "half": ("made 16 bit here", (_made_half,)),
    "tensor-attribute": ("a plain tensor", (_computed_from_a_parameter, lambda node: _requires_grad(node, True))),
}
MOST_DECORATORS = 8
IN_THE_FUNCTION = ("step", "bare-clear", "bare-eval", "clear", "difference", "no_grad", "random", "half")


def closer(look_for: str, places: Sequence[Place]) -> tuple[Place, str] | None:
    """The line that fits best: in the same function as a known place, else in the same file."""
    note, matches = SEARCHES[look_for]
    for match in matches:
        for near in reversed(places):
            tree = _parsed(near.file)
            if tree is None:
                continue
            scopes: list[ast.AST] = [scope for scope in [_enclosing(tree, near.line)] if scope is not None]
            if look_for not in IN_THE_FUNCTION or not scopes or look_for in ("step", "bare-clear", "difference", "clear", "half"):
                scopes.append(tree)
            for scope in scopes:
                found = sorted({node.lineno for node in ast.walk(scope) if match(node) and hasattr(node, "lineno")})
                if look_for == "difference":
                    found = [line for line in found if not _without_gradients(scope, line)]
                if look_for == "step":
                    found = [line for line in found if "sched" not in _text(near.file, line).lower()] or found
                if found:
                    line = min(found, key=lambda line: abs(line - near.line)) if look_for in IN_THE_FUNCTION else found[-1]
                    condition = _condition(scope, line, near.line) if look_for == "step" and match is not _bare_step else None
                    if condition is not None:
                        return Place(near.file, condition), "the step stands under this condition, which never held"
                    return Place(near.file, line), note
    return None


def _condition(scope: ast.AST, line: int, reached: int) -> int | None:
    """The line of the innermost `if` around a line, in a block that a line which ran does not share."""
    around = [
        node for node in ast.walk(scope)
        if isinstance(node, ast.If) and node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
        and not node.lineno <= reached <= (node.end_lineno or 0)
    ]  # fmt: skip
    return max((node.lineno for node in around), default=None)


def _without_gradients(scope: ast.AST, line: int) -> bool:
    return any(_no_grad(node) and node.lineno <= line <= (node.end_lineno or 0) for node in ast.walk(scope) if isinstance(node, ast.With))


def _parsed(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


def _enclosing(tree: ast.Module, line: int) -> ast.AST | None:
    def functions(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.walk(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and child.lineno <= line <= (child.end_lineno or 0):
                yield child

    return min(functions(tree), key=lambda f: (f.end_lineno or 0) - f.lineno, default=None)  # type: ignore[attr-defined]


def behind_the_loop(inner: Place, later: Place) -> int | None:
    """The line of the loop that `inner` is part of, where `later` stands behind that loop, in the same block or one around it, and under no
    condition."""
    tree = _parsed(inner.file) if inner.file == later.file else None
    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While)) and _covers(node, inner.line)] if tree is not None else []
    innermost = max(loops, key=lambda node: node.lineno, default=None)
    if tree is None or innermost is None or _covers(innermost, later.line) or later.line < innermost.lineno:
        return None
    conditions = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _covers(node, later.line) and not _covers(node, inner.line)]
    function = _enclosing(tree, inner.line)
    return innermost.lineno if not conditions and function is _enclosing(tree, later.line) else None


def where_a_loop_is_left(inner: Place, later: Place) -> int | None:
    """The line of the condition under which a loop around `inner`, which `later` stands behind, is left before its end."""
    tree = _parsed(inner.file) if inner.file == later.file else None
    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While)) and _covers(node, inner.line)] if tree is not None else []
    for loop in sorted(loops, key=lambda node: node.lineno):
        if not _covers(loop, later.line) and loop.lineno < later.line:
            return next((branch.lineno for branch in _branches(loop) if any(isinstance(node, (ast.Break, ast.Return)) for node in branch.body)), None)
    return None


def _branches(block: ast.AST) -> Iterator[ast.If]:
    """The conditions in a loop, and not those of loops and functions within it."""
    for child in ast.iter_child_nodes(block):
        if isinstance(child, ast.If):
            yield child
        if not isinstance(child, (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _branches(child)


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _text(file: str, line: int) -> str:
    return linecache.getline(file, line).strip()


def below_decorators(place: Place) -> Place:
    """The line with `def` of a function that Python counts from its first decorator on."""
    for line in range(place.line, place.line + MOST_DECORATORS):
        if _text(place.file, line).startswith(("def ", "async def ", "class ")):
            return Place(place.file, line, place.function)
    return place


def computes(place: Place, index: int) -> Place | None:
    """In the function around a place: the line that computes one element of what it returns."""
    tree = _parsed(place.file)
    function = _enclosing(tree, place.line) if tree is not None else None
    returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value] if function is not None else []
    if function is None or len(returns) != 1:
        return None
    elements = returns[0].elts if isinstance(returns[0], ast.Tuple) else returns
    if index >= len(elements):
        return None
    wanted = elements[index]
    lines = [wanted.lineno]
    if isinstance(wanted, ast.Name):
        lines += [
            node.lineno for node in ast.walk(function)
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and not isinstance(node.value, ast.Constant)
            and any(isinstance(part, ast.Name) and part.id == wanted.id and isinstance(part.ctx, ast.Store) for part in ast.walk(node))
        ]  # fmt: skip
    return Place(place.file, lines[-1] if len(lines) > 1 else lines[0], place.function)


def code_at(place: Place) -> str:
    """The source of a line, stripped; a call that goes on over several lines is given by its first."""
    return _text(place.file, place.line)


def neighbours(file: str, line: int, reach: int = 2) -> list[tuple[int, str]]:
    """A line with those around it, as they stand in the file."""
    found = [(number, linecache.getline(file, number).rstrip()) for number in range(max(1, line - reach), line + reach + 1)]
    while found and not found[-1][1]:
        found.pop()
    return found[1:] if found and not found[0][1] else found


def held_locks(lines: Sequence[tuple[str, int]]) -> tuple[str, list[str]]:
    """For the user's lines of one thread, innermost first: what the innermost asks for, and what the `with` blocks around them hold."""
    wants, holds = "", []
    for depth, (file, line) in enumerate(lines):
        tree = _parsed(file)
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.With) or not node.lineno <= line <= (node.end_lineno or node.lineno):
                continue
            texts = [
                ast.unparse(item.context_expr) for item in node.items if isinstance(item.context_expr, (ast.Name, ast.Attribute))
            ]
            if node.body and line < node.body[0].lineno:
                wants = wants or (", ".join(texts) if depth == 0 else "")
            else:
                holds += [text for text in texts if text not in holds]
    return wants, holds
