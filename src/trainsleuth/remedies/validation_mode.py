"""Cures `mode/train-during-validation`: the model is put into eval mode before it is validated, and back where nothing else does it."""

from __future__ import annotations

import libcst as cst

from trainsleuth.remedies.eval_in_training import called_model
from trainsleuth.remedies.expressions import argument, called, set_argument
from trainsleuth.remedies.source import NotPossible, Source, Statement, called_name, everything


def sleep_before_validation(source: Source, line: int) -> str:
    """`model.eval()` ahead of the loop or block that validates; `model.train()` behind it, unless training wakes the model itself."""
    statement = source.statement_at(line)
    model = called_model(source, statement, line)
    outer = _outermost(source, statement)
    wakes = [call for call in called(source, "train") if isinstance(call.func, cst.Attribute) and not call.args]
    home = source.enclosing(statement, cst.FunctionDef)
    elsewhere = [call for call in wakes if source.enclosing(call, cst.FunctionDef) is not home or _in_a_loop(source, call)]
    if elsewhere:
        source.before(outer, f"{model}.eval()")
        return f"{model}.eval() before the validation in line {source.first_line(outer)}"
    if any(isinstance(node, (cst.Return, cst.Yield)) for node in everything(outer)):
        raise NotPossible("the validation returns from inside its block")
    source.before(outer, f"{model}.eval()")
    source.after(outer, f"{model}.train()")
    return f"{model}.eval() before the validation in line {source.first_line(outer)}, {model}.train() behind it"


def tell_dropout_the_mode(source: Source, line: int) -> str:
    """`F.dropout(x, p)` is told the mode of the module that calls it."""
    statement = source.statement_at(line)
    function = source.enclosing(statement, cst.FunctionDef)
    owner = source.enclosing(function, cst.ClassDef) if function is not None else None
    if not isinstance(function, cst.FunctionDef) or owner is None or not function.params.params:
        raise NotPossible(f"{source.path.name}:{line} is in no method of a module")
    module = function.params.params[0].name.value
    said = []
    for call in called(source, "dropout", "dropout1d", "dropout2d", "dropout3d", below=owner):
        if isinstance(call.func, cst.Attribute) and source.code(call.func.value) == "self":
            continue  # a Dropout module
        if len(call.args) < 3 and argument(call, 2, "training") is None:
            set_argument(source, call, "training", f"{module}.training")
            said.append(source.first_line(call))
    if not said:
        raise NotPossible(f"{source.path.name}:{line} calls no functional.dropout without `training`")
    return f"dropout in {'line' if len(said) == 1 else 'lines'} {', '.join(map(str, said))} is told whether the module is in train mode"


def pass_the_mode_on(source: Source) -> str:
    """A `train(self, mode)` of one's own that calls `super().train()` puts the model into train mode whatever was asked for."""
    for function in source.function_named("train"):
        asked = [parameter.name.value for parameter in function.params.params[1:2]]
        for call in called(source, "train", below=function):
            receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
            if asked and not call.args and isinstance(receiver, cst.Call) and called_name(receiver) == "super":
                source.edit(call, lambda updated: updated.with_changes(args=[cst.Arg(cst.Name(asked[0]))]))
                return f"line {source.first_line(call)} passes on which mode was asked for: without it, eval() switches train mode on"
    raise NotPossible("no train() of the program's own forgets which mode was asked for")


def _in_a_loop(source: Source, node: cst.CSTNode) -> bool:
    return any(isinstance(above, (cst.For, cst.While)) for above in source.above(node))


def _outermost(source: Source, statement: Statement) -> Statement:
    """The block of the validation: the `no_grad` around it or the loop over its batches, and not the loop over epochs."""
    found = statement
    for above in source.above(statement):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            return found
        if isinstance(above, (cst.For, cst.While, cst.With, cst.If, cst.Try)):
            if _trains(source, above) or (isinstance(above, cst.If) and "__name__" in source.code(above.test)):
                return found
            found = above
    return found


def _trains(source: Source, block: cst.CSTNode) -> bool:
    return bool(called(source, "backward", "training_step", "fit", below=block))
