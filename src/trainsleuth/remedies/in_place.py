"""Cures of the family `autograd`: the line that changes a tensor makes a new one, graphs end where a step ends."""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import (
    add_import,
    argument,
    called,
    calls_at,
    drop_argument,
    grouped,
    loop_around,
    put_on,
    rewrite_as,
    set_argument,
)
from trainsleuth.remedies.gradients_discarded import looks_like_a_step
from trainsleuth.remedies.source import NotPossible, Source, Statement, called_name, everything, names_in

OPERATORS = {
    cst.AddAssign: "+", cst.SubtractAssign: "-", cst.MultiplyAssign: "*", cst.DivideAssign: "/", cst.PowerAssign: "**",
    cst.MatrixMultiplyAssign: "@",
}  # fmt: skip
SPECIAL = {"zero_": "torch.zeros_like({x})", "fill_": "torch.full_like({x}, {y})", "copy_": "{y}.clone()"}

CHECKPOINT_OPTIONS = ("use_reentrant", "context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop")


def out_of_place(source: Source, line: int) -> str:
    """`x += 1` becomes `x = x + 1`, `x.relu_()` becomes `x = x.relu()`, `inplace=True` goes."""
    statement = source.statement_at(line)
    if isinstance(statement, cst.BaseCompoundStatement):
        raise NotPossible(f"{source.path.name}:{line} begins a block")
    for node in everything(statement):
        said = _augmented(source, node) or _called_in_place(source, node) or _flagged(source, node)
        if said:
            return f"line {line} {said}"
    raise NotPossible(f"the change in {source.path.name}:{line} has no form that can be made out of place")


def all_of_it_out_of_place(source: Source, line: int) -> str:
    """Where a name is changed in place several times in a function, each of them makes a new tensor."""
    statement = source.statement_at(line)
    changed = {source.code(node.target) for node in everything(statement) if isinstance(node, cst.AugAssign)}
    home = source.enclosing(statement, cst.FunctionDef) or source.module
    others = [node for node in source.all(cst.AugAssign, home) if source.code(node.target) in changed]
    said = [text for node in others if (text := _augmented(source, node))]
    if len(said) < 2:
        raise NotPossible(f"the change in {source.path.name}:{line} is the only one of its name")
    lines = ", ".join(str(source.first_line(node)) for node in others)
    return f"lines {lines} make new tensors: {'; '.join(text.partition(': ')[2] for text in said)}"


def _augmented(source: Source, node: cst.CSTNode) -> str:
    if not isinstance(node, cst.AugAssign) or type(node.operator) not in OPERATORS:
        return ""
    if not isinstance(node.target, (cst.Name, cst.Attribute)):
        return ""
    return f"makes a new tensor: {_written_out(source, node, source.code(node.target))}"


def _written_out(source: Source, node: cst.AugAssign, old: str) -> str:
    """`a += b` becomes `a = old + b`; what it says then."""
    sign = OPERATORS[type(node.operator)]
    right = node.value if sign == "+" and not isinstance(node.value, cst.IfExp) else grouped(node.value)
    new = cst.parse_statement(f"{source.code(node.target)} = {old} {sign} {cst.Module([]).code_for_node(right)}")
    assert isinstance(new, cst.SimpleStatementLine)
    source.replace(node, new.body[0])
    return source.code(new)


def _called_in_place(source: Source, node: cst.CSTNode) -> str:
    """A call as a statement of its own gets an assignment; inside an expression the plain form is enough."""
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        call = node.value
        name = called_name(call)
        if not name.endswith("_") or name.startswith("_") or not isinstance(call.func, cst.Attribute):
            return ""
        receiver = call.func.value
        root, plain_chain = _chain(call)
        if isinstance(receiver, cst.Call) and isinstance(root, (cst.Name, cst.Attribute)):
            return _assign(source, node, source.code(root), source.code(plain_chain))
        if source.code(receiver) in ("F", "torch", "nn.functional"):
            if not call.args or not isinstance(call.args[0].value, (cst.Name, cst.Attribute)):
                return ""
            target = source.code(call.args[0].value)
            plain = call.with_changes(func=call.func.with_changes(attr=cst.Name(name[:-1])))
            return _assign(source, node, target, source.code(plain))
        if not isinstance(receiver, (cst.Name, cst.Attribute)) or source.code(receiver).endswith(".data"):
            return ""
        target = source.code(receiver)
        if name in SPECIAL:
            given = source.code(call.args[0].value) if call.args else ""
            return _assign(source, node, target, SPECIAL[name].format(x=target, y=given))
        plain = call.with_changes(func=call.func.with_changes(attr=cst.Name(name[:-1])))
        return _assign(source, node, target, source.code(plain))
    if isinstance(node, cst.Call) and called_name(node).endswith("_") and not called_name(node).startswith("_"):
        if called_name(node) in ("requires_grad_", "backward_", "to_", "init_", *SPECIAL) or "init" in source.code(node.func):
            return ""
        if isinstance(source.parent(node), cst.Expr) or not isinstance(node.func, cst.Attribute):
            return ""
        source.replace(node.func.attr, cst.Name(called_name(node)[:-1]))
        return f"makes a new tensor: {called_name(node)[:-1]} instead of {called_name(node)}"
    return ""


def _chain(call: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """What a chain of methods begins with, and the chain without changes in place: `x.div(2).round()` of `x.div_(2).round_()`."""
    if not (isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute)):
        return call, call
    root, inner = _chain(call.func.value)
    name = call.func.attr.value
    plain = name[:-1] if name.endswith("_") and not name.startswith("_") and name != "requires_grad_" else name
    return root, call.with_changes(func=call.func.with_changes(value=inner, attr=cst.Name(plain)))


def _assign(source: Source, node: cst.Expr, target: str, value: str) -> str:
    new = cst.parse_statement(f"{target} = {value}")
    assert isinstance(new, cst.SimpleStatementLine)
    source.replace(node, new.body[0])
    return f"makes a new tensor: {target} = {value}"


def _flagged(source: Source, node: cst.CSTNode) -> str:
    if not isinstance(node, cst.Call):
        return ""
    given = argument(node, None, "inplace")
    if given is None and called_name(node) in ("ReLU", "ReLU6", "SiLU", "ELU", "LeakyReLU", "Dropout") and node.args:
        first = node.args[0]
        given = first if first.keyword is None and m.matches(first.value, m.Name("True")) else None
    if given is None or not m.matches(given.value, m.Name("True")):
        return ""
    drop_argument(source, node, given)
    return f"makes a new tensor: {called_name(node)} without inplace"


def built_in_place(source: Source, line: int) -> str:
    """The line calls a module that was built with inplace=True: where it is built, it loses it."""
    for call in calls_at(source, line):
        for node in source.all(cst.Assign):
            if source.code(node.targets[0].target) == source.code(call.func) and isinstance(node.value, cst.Call):
                for part in everything(node.value):
                    said = _flagged(source, part)
                    if said:
                        return f"line {source.first_line(node)} {said}"
    raise NotPossible(f"{source.path.name}:{line} calls nothing that was built with inplace=True")


def written_on_a_copy(source: Source, line: int) -> str:
    """`h[i] = v` writes into what backward still needs: v is computed first, then written on a copy, which costs one copy each time."""
    statement = source.statement_at(line)
    for node in everything(statement):
        target = (
            node.targets[0].target if isinstance(node, cst.Assign) else node.target if isinstance(node, cst.AugAssign) else None
        )
        if (
            not isinstance(node, (cst.Assign, cst.AugAssign))
            or not isinstance(target, cst.Subscript)
            or not isinstance(target.value, (cst.Name, cst.Attribute))
        ):
            continue
        if isinstance(node, cst.AugAssign) and type(node.operator) not in OPERATORS:
            continue
        whole = target.value
        if isinstance(whole, cst.Attribute) and whole.attr.value == "data":  # the copy is what is used from here on
            name = source.code(whole.value)
            source.before(statement, f"{name} = {name}.clone()")
            return f"line {line} writes on a copy of {name}"
        name = source.code(target.value)
        part = next(text for text in ("part", "new_part", "part_to_write") if text not in names_in(source.module))
        value = source.code(node.value)
        if isinstance(node, cst.AugAssign):
            value = f"{source.code(target)} {OPERATORS[type(node.operator)]} ({value})"
        new = cst.parse_statement(f"{source.code(target)} = {part}")
        assert isinstance(new, cst.SimpleStatementLine)
        source.replace(node, new.body[0])
        source.before(statement, f"{part} = {value}", f"{name} = {name}.clone()")
        return f"line {line} writes on a copy of {name}; in a loop, collecting the parts and torch.stack is cheaper"
    raise NotPossible(f"{source.path.name}:{line} writes into no named tensor")


def without_gradients(source: Source, line: int) -> str:
    """A parameter is changed by hand: that is no part of the graph."""
    statement = source.statement_at(line)
    if not isinstance(statement, cst.SimpleStatementLine):
        raise NotPossible(f"{source.path.name}:{line} begins a block")

    def inside(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.SimpleStatementLine)
        item = cst.WithItem(cst.parse_expression("torch.no_grad()"))
        return cst.With([item], cst.IndentedBlock([updated.with_changes(leading_lines=[])]), leading_lines=updated.leading_lines)

    source.edit(statement, inside)
    return f"line {line} changes the parameter outside of the graph (torch.no_grad)"


def detach_the_state(source: Source, line: int) -> str:
    """A state that is handed from one step to the next keeps all the steps before: it is detached where a step begins."""
    for place in _loops(source, line):
        carried = _carried(source, place)
        if carried is None:
            continue
        name, statement = carried
        form = f"{name} = tuple(part.detach() for part in {name})" if _is_a_pair(source, name) else f"{name} = {name}.detach()"
        source.after(statement, form)
        return f"{name} is detached after line {source.first_line(statement)}: each step has a graph of its own"
    raise NotPossible("no state that goes from one step to the next was found")


def detach_the_state_of_two(source: Source, line: int) -> str:
    """The same for a state of several tensors, as an LSTM's is, where the file does not show that it is one."""
    for place in _loops(source, line):
        carried = _carried(source, place)
        if carried is not None and not _is_a_pair(source, carried[0]):
            name, statement = carried
            source.after(statement, f"{name} = tuple(part.detach() for part in {name})")
            return f"{name} is detached after line {source.first_line(statement)}: each step has a graph of its own"
    raise NotPossible("no state of several tensors goes from one step to the next")


def detach_the_old_value(source: Source, line: int) -> str:
    """A value that is kept and used anew in each step, as a moving mean is, comes without the history of the steps before."""
    for node in everything(source.statement_at(line)):
        if isinstance(node, cst.AugAssign) and isinstance(node.target, (cst.Name, cst.Attribute)) and type(node.operator) in OPERATORS:
            name = source.code(node.target)
            _written_out(source, node, f"{name}.detach()")
            return f"line {line} uses the old {name} without its history"
        if not isinstance(node, cst.Assign) or not isinstance(node.targets[0].target, (cst.Name, cst.Attribute)):
            continue
        name = source.code(node.targets[0].target)
        used = [
            part for part in everything(node.value)
            if isinstance(part, (cst.Name, cst.Attribute)) and source.code(part) == name and not isinstance(source.parent(part), cst.Comparison)
        ]  # fmt: skip
        for part in used:
            put_on(source, part, "detach()")
        if used:
            return f"line {line} uses the old {name} without its history"
    raise NotPossible(f"{source.path.name}:{line} carries no value of its own on")


def state_without_gradients(source: Source, line: int) -> str:
    """A function that only brings what an object keeps up to date (moving means, code books) does so without gradients."""
    function = source.enclosing(source.statement_at(line), cst.FunctionDef)
    if function is None or function.decorators or function.name.value in ("forward", "__init__"):
        raise NotPossible(f"{source.path.name}:{line} is in no function that only updates what an object keeps")
    results = [node for node in source.all(cst.Return, function) if node.value is not None]
    kept = [node for node in source.all(cst.Assign, function) if m.matches(node.targets[0].target, m.Attribute(value=m.Name("self")))]
    if results or not kept or called(source, "backward", "step", below=function):
        raise NotPossible(f"{function.name.value} does more than bring what an object keeps up to date")
    new = cst.Decorator(cst.parse_expression("torch.no_grad()"))
    source.edit(function, lambda updated: updated.with_changes(decorators=[new]))
    return f"{function.name.value} runs without gradients: what it keeps has no history (line {source.first_line(function)})"


def _loops(source: Source, line: int) -> list[cst.For | cst.While]:
    statement = source.statement_at(line)
    found = loop_around(source, statement)
    return [] if found is None else [found]


def _carried(source: Source, loop: cst.For | cst.While) -> tuple[str, Statement] | None:
    """A name that a statement of the loop both gives to a call and takes from it: `out, state = model(x, state)`."""
    for node in source.all(cst.Assign, loop):
        if not isinstance(node.value, cst.Call):
            continue
        targets = [source.code(element.value) for element in node.targets[0].target.elements] if isinstance(
            node.targets[0].target, cst.Tuple) else [source.code(node.targets[0].target)]  # fmt: skip
        given = [source.code(known.value) for call in everything(node.value) if isinstance(call, cst.Call) for known in call.args]
        for name in targets:
            if name in given and name.isidentifier():
                return name, source.statement_of(node)
    return None


def _is_a_pair(source: Source, name: str) -> bool:
    """Whether the state is an LSTM's pair, as far as the file tells."""
    return bool(re.search(rf"\b{name}\s*=\s*\(|\bLSTM\(", source.code(source.module)))


def computed_in_the_loop(source: Source, line: int) -> str:
    """A term of the loss that is computed once, before the loop, has a graph for one backward: compute it in each step."""
    statement = source.statement_at(line)
    assign = next((node for node in everything(statement) if isinstance(node, cst.Assign)), None)
    target = assign.targets[0].target if assign is not None else None
    if not isinstance(target, cst.Name) or assign is None or not isinstance(statement, cst.SimpleStatementLine):
        raise NotPossible(f"{source.path.name}:{line} computes no named term")
    home = source.enclosing(statement, cst.FunctionDef) or source.module
    for loop in reversed(source.all(cst.For, home)):
        if source.covers(loop, line) or not called(source, "backward", below=loop) or target.value not in names_in(loop.body):
            continue
        first = loop.body.body[0] if isinstance(loop.body, cst.IndentedBlock) else None
        if isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            source.remove(assign)
            source.before(first, source.code(assign))
            return f"{target.value} of line {line} is computed in each step: each backward has a graph of its own"
    raise NotPossible(f"no loop uses what {source.path.name}:{line} computes")


def not_from_a_cache(source: Source, line: int) -> str:
    """What is computed once and kept has a graph for one backward: while gradients are computed it is made anew each time."""
    statement = source.statement_at(line)
    function = source.enclosing(statement, cst.FunctionDef)
    keeping = [] if function is None else [d for d in function.decorators if re.search(r"\b(lru_cache|cache|cached_property)\b", source.code(d))]
    if function is not None and keeping:
        as_property = "cached_property" in source.code(keeping[0])
        kept = [d.with_changes(decorator=cst.Name("property")) if d is keeping[0] else d
                for d in function.decorators if d is not keeping[0] or as_property]  # fmt: skip
        source.edit(function, lambda updated: updated.with_changes(decorators=kept))
        return f"{function.name.value} is computed each time: each backward has a graph of its own"
    made = _assigned(statement) - {"self"}
    for block in source.above(statement):
        if isinstance(block, (cst.FunctionDef, cst.Module)):
            break
        if not isinstance(block, cst.If) or not any(_asks_whether_it_is_there(source, block.test, name) for name in made):
            continue
        source.replace(block.test, cst.parse_expression(f"{source.code(block.test)} or torch.is_grad_enabled()"))
        add_import(source, "import torch", "torch")
        return f"line {line} is computed anew while gradients are on: each backward has a graph of its own"
    raise NotPossible(f"{source.path.name}:{line} keeps nothing in a cache")


def _asks_whether_it_is_there(source: Source, test: cst.BaseExpression, name: str) -> bool:
    """`x is None`, `not x`, `key not in x`, `not hasattr(self, "x")`."""
    last = re.escape(name.rpartition(".")[2])
    return bool(re.search(rf"\b{last}\b[\w\[\]]* is None|not (\w+\.)?{last}$|not in (\w+\.)?{last}$|not hasattr\(.*\b{last}\b", source.code(test)))


def keep_the_graph(source: Source, line: int) -> str:
    """Of two backwards through one graph the first keeps it."""
    home = source.enclosing(source.statement_at(line), cst.FunctionDef) or source.module
    found = [call for call in called(source, "backward", below=home) if argument(call, None, "retain_graph") is None]
    if len(called(source, "backward", below=home)) < 2 or not found:
        raise NotPossible("there are no two backwards in this function")
    set_argument(source, found[0], "retain_graph", "True")
    return f"the backward in line {source.first_line(found[0])} keeps the graph for the next one"


def second_loss_after_the_step(source: Source, line: int) -> str:
    """The loss whose backward comes after the step is computed after it, too, from the weights that the step has made.

    To step after both backwards instead would not do: the second one leaves its gradients in the weights that are stepped.
    """
    statement = source.statement_at(line)
    if not any(isinstance(call, cst.Call) and looks_like_a_step(source, call) for call in everything(statement)):
        raise NotPossible(f"{source.path.name}:{line} does not step an optimizer itself")
    block = source.block_of(statement)
    before, later = block[: block.index(statement)], block[block.index(statement) + 1 :]
    backwards = [call for other in later for call in called(source, "backward", below=other)]
    loss = _name_of_the_loss(backwards[0]) if backwards else None
    made = next((other for other in reversed(before) if loss in _assigned(other)), None)
    if made is None and loss is not None and (part := _part_from_before(source, before, later, loss)) is not None:
        source.after(statement, source.code(part))
        return f"what line {source.first_line(part)} computes is computed once more after the step in line {line}, from the weights that it leaves"
    if loss is None or made is None:
        raise NotPossible("the second loss is not computed in the same block, before the step")
    between = before[before.index(made) + 1 :]
    if any(loss in names_in(other) for other in between):
        raise NotPossible(f"{loss} is used before the step, too")
    first = [] if _holds_a_forward(made) else [source.code(other) for other in before[: before.index(made)]
                                               if _assigned(other) & names_in(made) and _calls_in(other)]  # fmt: skip
    source.remove(made)
    source.after(statement, *first, source.code(made))
    return f"{loss} is computed after the step in line {line}, from the weights that it leaves"


def _part_from_before(source: Source, before: list[Statement], later: list[Statement], loss: str) -> Statement | None:
    """The statement before the step whose result had its own backward there, and is a part of the loss behind the step."""
    made = next((other for other in later if loss in _assigned(other)), None)
    firsts = {name for other in before for call in called(source, "backward", below=other) if (name := _name_of_the_loss(call)) is not None}
    used = firsts & names_in(made) if made is not None else set()
    return next((other for other in reversed(before) if _assigned(other) & used and isinstance(other, cst.SimpleStatementLine)), None)


def _name_of_the_loss(backward: cst.Call) -> str | None:
    """loss of `loss.backward()` and of `scaler.scale(loss).backward()`."""
    whose = backward.func.value if isinstance(backward.func, cst.Attribute) else None
    if isinstance(whose, cst.Call) and len(whose.args) == 1:
        whose = whose.args[0].value
    return whose.value if isinstance(whose, cst.Name) else None


def _assigned(statement: cst.CSTNode) -> set[str]:
    """The names that a statement gives values to."""
    targets = [target.target for node in everything(statement) if isinstance(node, cst.Assign) for target in node.targets]
    return {name for target in targets for name in names_in(target)}


def _calls_in(node: cst.CSTNode) -> list[cst.Call]:
    return [call for call in everything(node) if isinstance(call, cst.Call)]


def _holds_a_forward(statement: cst.CSTNode) -> bool:
    """Whether what a loss is made from is computed in the same line: one call is given what another returns."""
    return any(_calls_in(argument.value) for call in _calls_in(statement) for argument in call.args)


def changed_after_the_step(source: Source, line: int) -> str:
    """Weights that are changed between forward and backward are changed behind the step instead."""
    statement = source.statement_at(line)
    if called(source, "backward", below=statement) or any(looks_like_a_step(source, call) for call in _calls_in(statement)):
        raise NotPossible(f"{source.path.name}:{line} is the backward or a step itself")
    moved = statement
    for above in source.above(statement):
        if isinstance(above, (cst.FunctionDef, cst.Module)):
            break
        if isinstance(above, (cst.For, cst.With, cst.If)) and not called(source, "backward", below=above):
            moved = above
    block = source.block_of(moved)
    steps = [other for other in block[block.index(moved) + 1 :]
             if any(isinstance(call, cst.Call) and looks_like_a_step(source, call) for call in everything(other))]  # fmt: skip
    if not steps or not called(source, "backward", below=source.parent(moved)):
        raise NotPossible("no step comes later in the same block")
    between = block[block.index(moved) + 1 : block.index(steps[0]) + 1]
    if any(_assigned(moved) & names_in(other) for other in between):
        raise NotPossible(f"what {source.path.name}:{line} computes is needed before the step")
    source.move_below([moved], steps[0])
    return f"line {source.first_line(moved)} comes after the step in line {source.first_line(steps[0])}"


def weights_after_the_step(source: Source, line: int) -> str:
    """The same, where the line shuts gradients out: what it changes in place are weights, which must stay the same tensor."""
    statement = source.statement_at(line)
    around = [item for above in source.above(statement) if isinstance(above, cst.With) for item in above.items]
    if not any(called(source, "no_grad", "inference_mode", "set_grad_enabled", below=item) for item in around):
        raise NotPossible(f"{source.path.name}:{line} is not under no_grad")
    return changed_after_the_step(source, line)


def on_a_clone(source: Source, line: int) -> str:
    """`x.data` or numpy write into memory that backward still needs: let them have a copy."""
    for node in everything(source.statement_at(line)):
        if isinstance(node, cst.Call) and called_name(node) in ("numpy", "detach") and isinstance(node.func, cst.Attribute):
            put_on(source, node, "copy()" if called_name(node) == "numpy" else "clone()")
            return f"line {line} works on a copy"
    raise NotPossible(f"{source.path.name}:{line} shares no memory in a form that can be copied")


def given_as_a_copy(source: Source, line: int) -> str:
    """What a model is called with is overwritten before backward (a buffer that is filled anew): it is given a copy."""
    for call in calls_at(source, line):
        inner = [part for given in call.args for part in everything(given) if isinstance(part, cst.Call)]
        tensors = [given.value for given in call.args if isinstance(given.value, (cst.Name, cst.Attribute))]
        if inner or not tensors or not isinstance(call.func, (cst.Name, cst.Attribute)):
            continue
        for tensor in tensors:
            put_on(source, tensor, "clone()")
        return f"{source.code(call.func)} of line {line} is given a copy, which nobody overwrites"
    raise NotPossible(f"{source.path.name}:{line} gives no named tensor to a call")


def keep_the_random_state(source: Source) -> str:
    """Checkpointing puts torch's random state back for its second run, unless it is told not to."""
    told = [given for given in source.all(cst.Arg) if given.keyword is not None and given.keyword.value == "preserve_rng_state"]
    told = [given for given in told if source.code(given.value) != "True"]
    if not told:
        raise NotPossible(f"{source.path.name} tells no checkpoint to leave the random state as it is")
    for given in told:
        rewrite_as(source, given.value, "True")
    lines = ", ".join(str(source.first_line(given)) for given in told)
    return f"the random state is put back for the second run of a checkpointed block (line {lines})"


def torch_random(source: Source, line: int) -> str:
    """torch's generator is restored when a checkpointed block is computed again; Python's and numpy's are not."""
    found = [call for call in calls_at(source, line, "random", "rand", "uniform")
             if source.code(call.func) in ("random.random", "np.random.rand", "np.random.random", "numpy.random.rand")]  # fmt: skip
    if not found:
        raise NotPossible(f"{source.path.name}:{line} draws no number from Python's or numpy's generator")
    for call in found:
        rewrite_as(source, call, "torch.rand(()).item()")
    return f"line {line} draws from torch's generator, which is restored for the recomputation"


def copied_when_taken_out(source: Source, line: int) -> str:
    """What is taken out of the graph to be written to is a copy: `.numpy().copy()`, `.detach().clone()`."""
    statement = source.statement_at(line)
    for names, copy in ((("numpy",), "copy()"), (("detach",), "clone()")):
        for node in everything(statement):
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and called_name(node) in names and source.covers(node, line):
                put_on(source, node, copy)
                return f"line {line} writes to a copy, not to what backward needs"
    for node in everything(statement):
        if isinstance(node, cst.Attribute) and node.attr.value == "data" and source.covers(node, line):
            put_on(source, node, "clone()")
            return f"line {line} writes to a copy, not to what backward needs"
    raise NotPossible(f"nothing in {source.path.name}:{line} takes a tensor out of the graph")


def copied_where_it_got_its_name(source: Source, line: int) -> str:
    """`hard = probs.data`, and later `hard[…] = 1`: the name is given to a copy."""
    statement = source.statement_at(line)
    written = [
        node.target.value for node in everything(statement)
        if isinstance(node, (cst.AssignTarget, cst.AugAssign)) and isinstance(node.target, cst.Subscript)
    ] + [node.func.value for node in everything(statement) if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
         and called_name(node).endswith("_")]  # fmt: skip
    names = {node.value for node in written if isinstance(node, cst.Name)}
    function = source.enclosing(statement, cst.FunctionDef)
    for node in source.all(cst.Assign, function) if function is not None else ():
        target = node.targets[0].target
        if isinstance(target, cst.Name) and target.value in names and source.first_line(node) < line:
            return copied_when_taken_out(source, source.first_line(node))
    raise NotPossible(f"what {source.path.name}:{line} writes to has not got its name in the same function")


def not_checkpointed(source: Source, line: int) -> str:
    """The function is called as it is: right gradients, for the memory that checkpointing saves."""
    for call in calls_at(source, line, "checkpoint"):
        plain = [given for given in call.args if given.keyword is None or given.keyword.value not in CHECKPOINT_OPTIONS]
        if not plain or plain[0].keyword is not None or plain[0].star:
            continue
        plain[-1] = plain[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        source.replace(call, cst.Call(func=grouped(plain[0].value), args=plain[1:]))
        return f"line {line} calls {source.code(plain[0].value)} without checkpointing; it costs the memory that was saved"
    raise NotPossible(f"{source.path.name}:{line} calls no checkpoint with a function written out")
