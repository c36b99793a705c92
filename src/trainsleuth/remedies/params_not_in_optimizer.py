"""Cures `stall/params-not-in-optimizer`: the optimizer is built from the model that is trained, once that model is complete."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import argument, calls_at, drop_argument
from trainsleuth.remedies.source import NotPossible, Source, Statement, called_name, everything, names_in

WRAPPERS = ("DataParallel", "DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel", "Sequential", "deepcopy")


@dataclass(frozen=True)
class Built:
    """The statement that builds the optimizer, and the expressions whose parameters it takes."""

    statement: Statement
    name: str
    call: cst.Call
    models: tuple[cst.BaseExpression, ...]  # `model.head` of `model.head.parameters()`


def rewrite(source: Source, line: int, others: Sequence[int]) -> str:
    """Change where, or from what, the optimizer in this line is built; `others` are lines that made the lost parameters."""
    built = _built(source, line)
    for way in (_after_the_model, _from_the_whole_model):
        said = way(source, built, others)
        if said:
            return said
    raise NotPossible("no statement near the optimizer explains where the other parameters come from")


def rewrite_where_it_is_asked_for(source: Source, line: int, changing: Collection[str]) -> str:
    """The optimizer comes from a function of the program: its call moves behind the lines that change the model.

    `changing` are functions in which the lost parameters were made.
    """
    statement = source.statement_at(line)
    for node in everything(statement):
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call) and len(node.targets) == 1:
            given = tuple(arg.value for arg in node.value.args if m.matches(arg.value, m.Name() | m.Attribute()))
            built = Built(statement, source.code(node.targets[0].target), node.value, given)
            said = _after_the_model(source, built, (), changing) if given else ""
            if said:
                return said
    raise NotPossible(f"behind {source.path.name}:{line} no statement changes the model that the optimizer was asked for")


def with_the_rest(source: Source, line: int) -> str:
    """A function that sorts parameters into groups forgets some: what is left becomes one more group."""
    statement = source.statement_at(line)
    function = source.enclosing(statement, cst.FunctionDef)
    made = _made_at(statement)
    if function is None or made is None or not isinstance(statement, cst.SimpleStatementLine):
        raise NotPossible(f"{source.path.name}:{line} is not the line of a function that builds an optimizer")
    text = source.code(statement)
    parameters = [parameter.name.value for parameter in function.params.params]
    asked = [name for name in parameters if _is_asked(source, function, name)]
    inner = [call for call in source.all(cst.Call, made) if call is not made]
    handed_on = [source.code(arg.value) for call in inner for arg in call.args]
    asked = asked or [name for name in parameters if any(_is_asked_behind(source, call, name) for call in inner)]
    models = asked or [name for name in parameters if name in handed_on]
    if len(models) != 1:
        raise NotPossible(f"it cannot be told which argument of the function around {source.path.name}:{line} is the model")
    model = models[0]
    returned = isinstance(statement.body[-1], cst.Return)
    name = "optimizer" if returned else source.code(next(node for node in everything(statement) if isinstance(node, cst.Assign)).targets[0].target)
    rest = (
        f'held = {{id(p) for group in {name}.param_groups for p in group["params"]}}',
        f'{name}.add_param_group({{"params": [p for p in {model}.parameters() if p.requires_grad and id(p) not in held]}})',
    )
    if returned:
        source.before(statement, f"{name} = {text.removeprefix('return').strip()}", *rest)
        source.edit(statement, lambda _: cst.parse_statement(f"return {name}\n"))
    else:
        source.after(statement, *rest)
    return f"what fits none of the groups is trained too, in a group of its own (line {line})"


def _is_asked(source: Source, function: cst.FunctionDef, name: str) -> bool:
    """Whether a function asks what bears this name for its parameters, or its parts."""
    return re.search(rf"\b{re.escape(name)}\.(named_)?(parameters|modules)\(", source.code(function)) is not None


def _is_asked_behind(source: Source, call: cst.Call, name: str) -> bool:
    """Whether a function of this file, which is given what bears this name, asks it."""
    at = [index for index, given in enumerate(call.args) if given.keyword is None and source.code(given.value) == name]
    return any(
        at and at[0] < len(function.params.params) and _is_asked(source, function, function.params.params[at[0]].name.value)
        for function in source.function_named(called_name(call))
    )


def _made_at(statement: cst.CSTNode) -> cst.Call | None:
    """The call whose value the statement returns, or gives a name."""
    for node in everything(statement):
        if isinstance(node, (cst.Return, cst.Assign)) and isinstance(node.value, cst.Call):
            return node.value
    return None


def join_the_trainers_optimizer(source: Source, line: int) -> str:
    """A layer that a callback makes once the trainer has its optimizer is given to that optimizer."""
    statement = source.statement_at(line)
    made = next((node for node in everything(statement) if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call)), None)
    function = source.enclosing(statement, cst.FunctionDef)
    if made is None or function is None or not isinstance(function.body, cst.IndentedBlock):
        raise NotPossible(f"{source.path.name}:{line} makes no layer inside a function")
    known = [parameter.name.value for parameter in function.params.params]
    if "trainer" not in known or not isinstance(made.targets[0].target, (cst.Name, cst.Attribute)):
        raise NotPossible(f"{source.path.name}:{line} knows no trainer whose optimizer the layer could join")
    last = source.block_of(statement)[-1]
    if not isinstance(last, cst.SimpleStatementLine) or isinstance(last.body[-1], cst.Return):
        raise NotPossible(f"the block around {source.path.name}:{line} ends in the middle of something")
    name = source.code(made.targets[0].target)
    source.after(last, f'trainer.optimizers[0].add_param_group({{"params": list({name}.parameters())}})')
    return f"{name} of line {line} joins the optimizer that the trainer has by then"


def _built(source: Source, line: int) -> Built:
    statement = source.statement_at(line)
    for node in everything(statement):
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call) and len(node.targets) == 1:
            models = tuple(
                call.func.value for call in everything(node.value)
                if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute)
                and called_name(call) in ("parameters", "named_parameters")
            )  # fmt: skip
            if not models:
                models = _through_a_variable(source, statement, node.value)
            if models:
                return Built(statement, source.code(node.targets[0].target), node.value, models)
    raise NotPossible(f"{source.path.name}:{line} builds no optimizer in a statement that could be moved or given another model")


def _through_a_variable(source: Source, statement: Statement, call: cst.Call) -> tuple[cst.BaseExpression, ...]:
    """`params = [p for p in model.parameters()]`, then `Adam(params)`: the model is named a line above."""
    wanted = names_in(call)
    block = source.block_of(statement)
    for earlier in reversed(block[: block.index(statement)]):
        for node in everything(earlier):
            if isinstance(node, cst.Assign) and any(source.code(target.target) in wanted for target in node.targets):
                return tuple(
                    inner.func.value for inner in everything(node.value)
                    if isinstance(inner, cst.Call) and isinstance(inner.func, cst.Attribute)
                    and called_name(inner) in ("parameters", "named_parameters")
                )  # fmt: skip
    return ()


def _after_the_model(source: Source, built: Built, others: Sequence[int], changing: Collection[str] = ()) -> str:
    """The model is changed, replaced or wrapped further down in the same block: build the optimizer behind that."""
    block = source.block_of(built.statement)
    at = block.index(built.statement)
    last, wrapped = None, ""
    for index in range(at + 1, len(block)):
        if isinstance(block[index], (cst.FunctionDef, cst.ClassDef)):
            continue
        change = _change(source, built, block[index], others, changing)
        if change is not None:
            last, wrapped = index, change or wrapped
    if last is None:
        return ""
    below = block[last]
    moved = _with_dependents(source, built, block[at:last])
    bound = {name for statement in moved for name in _bound(statement)}
    if names_in(below) & bound or _methods_use(source, below, bound):
        return ""
    source.move_below(moved, below, _Rename(built.models, wrapped) if wrapped else None)
    reason = f"is built from {wrapped}" if wrapped else "is built"
    return f"the optimizer {reason} after line {source.span(below).end.line}, when the model is complete"


def _change(source: Source, built: Built, statement: Statement, others: Sequence[int], changing: Collection[str] = ()) -> str | None:
    """None if the statement leaves the model alone; otherwise the model's new name, or an empty text if it keeps its own."""
    if isinstance(statement, (cst.For, cst.While)):
        return None
    models = [source.code(model) for model in built.models]
    for node in everything(statement):
        if isinstance(node, cst.Assign):
            target = source.code(node.targets[0].target)
            replaces = any(target == model or target.startswith(model + ".") for model in models)
            if replaces and isinstance(node.value, cst.Call) and not _only_moves(node.value):
                return ""
            taken = [source.code(arg.value) for arg in node.value.args] if isinstance(node.value, cst.Call) else []
            if any(model in taken for model in models) and built.name not in taken and _makes_a_model(source, node.value):
                return target
        if isinstance(node, cst.Call):
            if called_name(node) == "load_state_dict" and "assign" in source.code(node) and _receiver(source, node) in models:
                return ""
            takes_model = any(model in {source.code(a.value) for a in node.args} for model in models)
            if called_name(node) in changing and (takes_model or _receiver(source, node) in models):
                return ""
            if takes_model and any(_holds(source, called_name(node), line) for line in others):
                return ""
            if _receiver(source, node) in models and called_name(node) in ("add_module", "append", "resize_token_embeddings"):
                return ""
            own = _receiver(source, node) == "self" and any(model.startswith("self.") for model in models)
            if (own or _receiver(source, node) in models) and any(_holds(source, called_name(node), line) for line in others):
                return ""
    if any(source.covers(statement, line) for line in others):
        return ""
    return None


def _makes_a_model(source: Source, node: cst.BaseExpression) -> bool:
    """A call whose name is a class's: of the file, or at least spelt like one."""
    if not isinstance(node, cst.Call):
        return False
    name = called_name(node)
    classes = {found.name.value: found for found in source.all(cst.ClassDef)}
    if name in classes:
        return any("Module" in source.code(base.value) for base in classes[name].bases)
    return name in WRAPPERS


def _only_moves(call: cst.BaseExpression) -> bool:
    return isinstance(call, cst.Call) and called_name(call) in ("to", "cuda", "cpu", "train", "eval", "float", "half", "compile")


def _receiver(source: Source, call: cst.Call) -> str:
    return source.code(call.func.value) if isinstance(call.func, cst.Attribute) else ""


def _holds(source: Source, function: str, line: int) -> bool:
    return any(source.covers(found, line) for found in source.function_named(function))


def _methods_use(source: Source, statement: Statement, bound: set[str]) -> bool:
    """Whether a method of this file that the statement calls on self reads one of the attributes that would come later."""
    for call in source.all(cst.Call, statement):
        if _receiver(source, call) == "self":
            for function in source.function_named(called_name(call)):
                if any(f"self.{name}" in source.code(function) for name in bound):
                    return True
    return False


def _with_dependents(source: Source, built: Built, statements: Sequence[Statement]) -> list[Statement]:
    """The optimizer's statement and those below it that use it (a scheduler, a scaler's set-up), which must move along."""
    moved = [built.statement]
    bound = set(_bound(built.statement))
    for statement in statements[1:]:
        if names_in(statement) & bound:
            moved.append(statement)
            bound |= set(_bound(statement))
    return moved


def _bound(statement: cst.CSTNode) -> Iterator[str]:
    """Names that a statement gives a value; of `self.optimizer = …` the attribute."""
    for node in everything(statement):
        if isinstance(node, cst.AssignTarget):
            target = node.target
            yield from names_in(target.attr if isinstance(target, cst.Attribute) else target)


class _Rename(cst.CSTTransformer):
    """Replaces the model's expression in front of `.parameters()`."""

    def __init__(self, models: Sequence[cst.BaseExpression], new: str) -> None:
        super().__init__()
        self._models = models
        self._new = cst.parse_expression(new)

    def __call__(self, statement: cst.CSTNode) -> cst.CSTNode:
        changed = statement.visit(self)
        assert isinstance(changed, cst.CSTNode)
        return changed

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if isinstance(original_node.func, cst.Attribute) and any(original_node.func.value is model for model in self._models):
            return updated_node.with_changes(func=original_node.func.with_changes(value=self._new))
        return updated_node


def _from_the_whole_model(source: Source, built: Built, others: Sequence[int]) -> str:
    """`model.head.parameters()` becomes `model.parameters()`, where the whole is known to be a model."""
    if len(built.models) != 1 or not isinstance(built.models[0], cst.Attribute):
        return ""
    part = built.models[0]
    whole = part.value
    if m.matches(whole, m.Name("self")) and not _is_a_module(source, built.statement):
        return ""
    source.replace(part, whole)
    return f"the optimizer takes all parameters of {source.code(whole)}, not only those of {source.code(part)}"


def _is_a_module(source: Source, node: cst.CSTNode) -> bool:
    owner = source.enclosing(node, cst.ClassDef)
    return owner is not None and any("Module" in source.code(base.value) for base in owner.bases)


def built_again_behind_the_change(source: Source, line: int, changing: Collection[str]) -> str:
    """An optimizer that an object keeps is built once more, behind the call of the function that changes the model later: a callback, say."""
    statement = source.statement_at(line)
    owner, home = source.enclosing(statement, cst.ClassDef), source.enclosing(statement, cst.FunctionDef)
    kept = next((node for node in everything(statement) if isinstance(node, cst.Assign) and m.matches(node.targets[0].target, m.Attribute())), None)
    if owner is None or home is None or kept is None:
        raise NotPossible(f"{source.path.name}:{line} does not keep the optimizer in an object")
    known = {source.code(parameter.name) for parameter in home.params.params[:1]}
    local = {parameter.name.value for parameter in home.params.params[1:]} | {
        target.target.value for node in source.all(cst.Assign, home) for target in node.targets if isinstance(target.target, cst.Name)
    }
    if names_in(kept.value) & local:
        raise NotPossible(f"what {source.path.name}:{line} builds the optimizer from is not known later")
    for method in source.all(cst.FunctionDef, owner):
        same_self = {source.code(parameter.name) for parameter in method.params.params[:1]} == known
        for part in method.body.body if same_self and method is not home else ():
            calls = [node for node in everything(part) if isinstance(node, cst.Call)]
            texts = [str(node.evaluated_value) for node in everything(part) if isinstance(node, cst.SimpleString)]
            asks = {called_name(call) for call in calls} | set(texts)
            if asks & set(changing) and "backward" not in asks and isinstance(part, (cst.SimpleStatementLine, cst.For)):
                source.after(part, source.code(kept))
                return f"the optimizer is built again behind line {source.first_line(part)}, from the parameters that the model has then"
    raise NotPossible(f"no method beside {source.path.name}:{line} calls what changes the model")


def copied_not_assigned(source: Source, line: int) -> str:
    """`load_state_dict(…, assign=True)` puts other tensors into the model; without it the numbers go into those that the optimizer holds."""
    for call in calls_at(source, line, "load_state_dict"):
        assign = argument(call, 2, "assign")
        if assign is not None:
            drop_argument(source, call, assign)
            return f"line {source.first_line(call)} copies the numbers into the parameters that the optimizer holds, and leaves those in place"
    raise NotPossible(f"{source.path.name}:{line} assigns no loaded tensors")


def written_into_the_parameter(source: Source, line: int) -> str:
    """`layer.weight = nn.Parameter(x)` makes a new parameter; its numbers go into the one that the optimizer holds, in the whole function."""
    function = source.enclosing(source.statement_at(line), cst.FunctionDef)
    made = [(node, kept) for node in source.all(cst.Assign, function) if (kept := _exchange(source, node))]
    if not any(source.first_line(node) == line for node, _ in made):
        raise NotPossible(f"{source.path.name}:{line} does not put nn.Parameter(…) into a layer")
    for node, (target, numbers) in made:
        source.replace(node, cst.Expr(cst.parse_expression(f"{target}.data.copy_({numbers})", config=source.module.config_for_parsing)))
    lines = ", ".join(str(source.first_line(node)) for node, _ in made)
    return f"the numbers are written into the parameters that the optimizer holds (line {lines}), and those stay in the model"


def _exchange(source: Source, node: cst.Assign) -> tuple[str, str] | None:
    """The layer's parameter and its new numbers, where one is assigned to an attribute of an object's."""
    if len(node.targets) != 1 or not isinstance(node.targets[0].target, cst.Attribute) or not isinstance(node.value, cst.Call):
        return None
    if called_name(node.value) != "Parameter" or not node.value.args or node.value.args[0].star:
        return None
    return source.code(node.targets[0].target), source.code(node.value.args[0].value)


def frozen_ones_too(source: Source, line: int) -> str:
    """The optimizer is given all parameters, not only those that are not frozen when it is built."""
    statement = source.statement_at(line)
    for node in everything(statement):
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)) and len(node.for_in.ifs) == 1 and node.for_in.inner_for_in is None:
            condition = node.for_in.ifs[0].test
            if not (isinstance(condition, cst.Attribute) and condition.attr.value == "requires_grad"):
                continue
            if source.code(node.elt) == source.code(node.for_in.target):
                source.replace(node, node.for_in.iter)
            else:
                source.edit(node.for_in, lambda updated: updated.with_changes(ifs=[]))
        elif isinstance(node, cst.Call) and called_name(node) == "filter" and "requires_grad" in source.code(node.args[0]) and len(node.args) == 2:
            source.replace(node, node.args[1].value)
        else:
            continue
        return f"the optimizer in line {line} holds all parameters: those that are frozen now get no gradient, and later they do"
    raise NotPossible(f"{source.path.name}:{line} leaves no frozen parameters out")
