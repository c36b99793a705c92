"""Cures `mode/eval-during-training`: the model is put into train mode where its training loop begins."""

from __future__ import annotations

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, is_method_call, names_in

NOT_MODELS = ("criterion", "loss", "metric", "accuracy", "print", "len", "autocast", "tqdm", "transform", "augment", "tokenizer")


def wake_before_forward(source: Source, line: int) -> str:
    """Insert `model.train()` ahead of the loop in which the line calls the model."""
    statement = source.statement_at(line)
    model = called_model(source, statement, line)
    loop = _training_loop(source, statement)
    if loop is None:
        source.before(statement, f"{model}.train()")
        return f"{model}.train() before the forward in line {line}"
    if _falls_asleep_inside(source, loop):
        first = loop.body.body[0] if isinstance(loop.body, cst.IndentedBlock) else None
        if not isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            raise NotPossible("the training loop stands on one line")
        source.before(first, f"{model}.train()")
        return f"{model}.train() at the start of each pass of the loop in line {source.first_line(loop)}"
    source.before(loop, f"{model}.train()")
    return f"{model}.train() before the training loop in line {source.first_line(loop)}"


def drop_eval(source: Source, line: int) -> str:
    """`return model.eval()` becomes `return model`; a statement that only calls eval goes."""
    statement = source.statement_at(line)
    for node in everything(statement):
        if isinstance(node, cst.Expr) and (is_method_call(node.value, "eval") or _is_train_false(node.value)):
            source.remove(node)
            return f"line {line} no longer puts the model into eval mode"
        if isinstance(node, cst.Call) and (is_method_call(node, "eval") or _is_train_false(node)) and not node.args[1:]:
            assert isinstance(node.func, cst.Attribute)
            source.replace(node, node.func.value)
            return f"line {line} no longer puts the model into eval mode"
    raise NotPossible(f"{source.path.name}:{line} does not call eval itself")


def _is_train_false(node: cst.CSTNode) -> bool:
    return m.matches(node, m.Call(func=m.Attribute(attr=m.Name("train")), args=[m.Arg(value=m.Name("False"))]))


def called_model(source: Source, statement: cst.CSTNode, line: int) -> str:
    """The expression that is called like a model: a plain name or an attribute of self, and no function of the file."""
    imported = {name for node in source.all(cst.BaseSmallStatement) if isinstance(node, (cst.Import, cst.ImportFrom))  # type: ignore[type-abstract]
                for name in names_in(node)}  # fmt: skip
    functions = {node.name.value for node in source.all(cst.FunctionDef)} | {node.name.value for node in source.all(cst.ClassDef)}
    switched = {source.code(call.func.value) for call in source.all(cst.Call)
                if isinstance(call.func, cst.Attribute) and called_name(call) in ("eval", "train")}  # fmt: skip
    found = []
    for call in everything(statement):
        if not isinstance(call, cst.Call) or not source.covers(call, line):
            continue
        text = source.code(call.func)
        plain = isinstance(call.func, cst.Name) or m.matches(call.func, m.Attribute(value=m.Name("self")))
        if not plain or called_name(call) in imported | functions or any(word in text.lower() for word in NOT_MODELS):
            continue
        found.append(text)
    if not found:
        raise NotPossible(f"the call of the model was not found in {source.path.name}:{line}")
    return next((text for text in found if text in switched), found[-1])


def _training_loop(source: Source, statement: cst.CSTNode) -> cst.For | cst.While | None:
    """The innermost loop around the forward, within its function."""
    for above in source.above(statement):
        if isinstance(above, (cst.For, cst.While)):
            return above
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return None
    return None


def _falls_asleep_inside(source: Source, loop: cst.CSTNode) -> bool:
    """Whether the loop itself, or a function of this file that it calls, puts something into eval mode."""
    for call in source.all(cst.Call, loop):
        if called_name(call) == "eval" and isinstance(call.func, cst.Attribute):
            return True
        for function in source.function_named(called_name(call)):
            if any(called_name(inner) == "eval" for inner in source.all(cst.Call, function)):
                return True
    return False
