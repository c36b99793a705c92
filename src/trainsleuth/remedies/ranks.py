"""Cures of the family `ranks`: every rank makes the same calls, holds the same weights, and waits for nobody who is done."""

from __future__ import annotations

import re

import libcst as cst

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import (
    add_import,
    argument,
    called,
    calls_at,
    imported,
    iterated,
    loop_around,
    rewrite_as,
    set_argument,
    unwrap,
)
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, names_in

OF_SOME_RANKS = re.compile(r"(?i)rank|main|master|chief|primary|leader")  # in a condition: ranks differ in it
OF_EVERY_MODULE = ("parameters", "named_parameters", "train", "eval", "to", "state_dict", "load_state_dict", "zero_grad", "requires_grad_",
                   "modules", "named_modules", "children", "buffers", "module", "no_sync", "training", "cpu", "cuda", "apply")  # fmt: skip
WRAPPERS = ("DistributedDataParallel", "DDP")
COLLECTIVES = ("barrier", "all_reduce", "broadcast", "all_gather", "reduce", "gather", "scatter", "all_gather_object", "broadcast_object_list",
               "reduce_scatter", "all_to_all", "wait_for_everyone")  # fmt: skip


def find_unused(source: Source, line: int) -> str:
    """`find_unused_parameters=True` where the model is wrapped."""
    here = [call for call in calls_at(source, line) if called_name(call) in WRAPPERS]
    known = here or called(source, *WRAPPERS)
    if len(known) != 1:
        raise NotPossible("the line that wraps the model in DDP was not found")
    set_argument(source, known[0], "find_unused_parameters", "True")
    return f"DDP looks for parameters without a gradient in each step (line {source.first_line(known[0])})"


def join(source: Source, line: int) -> str:
    """The loop over batches runs inside `with model.join():`, where ranks that are done keep answering."""
    statement = source.statement_at(line)
    loop = statement if isinstance(statement, cst.For) else loop_around(source, statement)
    if not isinstance(loop, cst.For):
        loop = _loop_over(source, line)
    model = _called_in(source, loop)

    def inside(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.For)
        block = cst.IndentedBlock([updated.with_changes(leading_lines=[])])
        item = cst.WithItem(cst.parse_expression(f"{model}.join()"))
        return cst.With(items=[item], body=block, leading_lines=updated.leading_lines)

    source.edit(loop, inside)
    return f"ranks that have no batch left keep answering the others: the loop in line {source.first_line(loop)} runs in {model}.join()"


def average_behind_backward(source: Source) -> str:
    """The gradients of what DDP wraps are averaged over the ranks, as its forward would have done."""
    wrapped = [
        source.code(node.targets[0].target) for node in source.all(cst.Assign)
        if isinstance(node.value, cst.Call) and called_name(node.value) in WRAPPERS
    ]  # fmt: skip
    backwards = [call for call in called(source, "backward") if isinstance(call.func, cst.Attribute)]
    if len(set(wrapped)) != 1 or len(backwards) != 1:
        raise NotPossible(f"{source.path.name} does not wrap one model and call backward once")
    name, statement = wrapped[0], source.statement_of(backwards[0])
    same = source.enclosing(statement, cst.ClassDef) is source.enclosing(called(source, *WRAPPERS)[0], cst.ClassDef)
    here = source.enclosing(statement, cst.FunctionDef) is source.enclosing(called(source, *WRAPPERS)[0], cst.FunctionDef)
    if not (here or (same and name.startswith("self."))):
        raise NotPossible(f"{name} is not known where backward is called")
    add_import(source, "import torch.distributed as dist", "dist")
    source.after(
        statement,
        f"for p in {name}.parameters():\n    if p.grad is not None:\n        dist.all_reduce(p.grad)\n        p.grad /= dist.get_world_size()\n",
    )
    return f"behind backward (line {source.first_line(statement)}) the ranks share the mean of their gradients"


def _loop_over(source: Source, line: int) -> cst.For:
    """The loop over the loader that is built at the line."""
    for node in everything(source.statement_at(line)):
        if isinstance(node, cst.Assign):
            name = source.code(node.targets[0].target)
            for loop in source.all(cst.For):
                if source.code(iterated(loop)).rpartition(".")[2] == name.rpartition(".")[2] and called(
                    source, "backward", below=loop
                ):
                    return loop
    raise NotPossible("the loop over these batches was not found")


def _called_in(source: Source, loop: cst.For) -> str:
    """The model that the loop calls: wrapped in DDP in this file, under this name or as an argument."""
    wrapped = {
        source.code(node.targets[0].target).rpartition(".")[2] for node in source.all(cst.Assign)
        if isinstance(node.value, cst.Call) and called_name(node.value) in WRAPPERS
    }  # fmt: skip
    for call in source.all(cst.Call, loop):
        name = source.code(call.func)
        if name.rpartition(".")[2] in wrapped:
            return name
    raise NotPossible("the loop calls no model that is wrapped in DDP in this file")


def out_of_the_branch(source: Source, line: int) -> str:
    """A collective that only some ranks reach leaves its `if`: behind it as its last statement, or with all that the `if` holds."""
    statement = source.statement_at(line)
    collective = [call for call in everything(statement) if isinstance(call, cst.Call) and called_name(call) in COLLECTIVES]
    branch = source.enclosing(statement, cst.If)
    if (
        not collective
        or branch is None
        or source.enclosing(branch, cst.FunctionDef) is not source.enclosing(statement, cst.FunctionDef)
    ):
        return _calls_of(source, line)
    if not isinstance(branch.body, cst.IndentedBlock) or statement not in branch.body.body or branch.orelse is not None:
        raise NotPossible("what the other ranks should do must be decided")
    body = list(branch.body.body)
    if statement is body[-1] and len(body) > 1:
        source.remove(statement)
        source.after(branch, source.code(statement))
        return f"all ranks enter the {called_name(collective[0])} of line {line}: it stands behind its `if`"
    if statement is body[0]:
        unwrap(source, branch)
        return f"all ranks enter the {called_name(collective[0])} of line {line}: the `if` around it is gone"
    raise NotPossible("the collective stands in the middle of a branch")


def _calls_of(source: Source, line: int) -> str:
    """The line calls a function of this file in which the collective stands under a condition."""
    for call in calls_at(source, line):
        for function in source.function_named(called_name(call)):
            for inner in called(source, *COLLECTIVES, below=function):
                if isinstance(source.enclosing(inner, cst.If), cst.If):
                    return out_of_the_branch(source, source.first_line(inner))
    return _called_by_all(source, source.enclosing(source.statement_at(line), cst.FunctionDef), line)


def _called_by_all(source: Source, function: cst.FunctionDef | None, line: int, above: int = 3) -> str:
    """The function in which the collective stands is called under a condition: all ranks call it, before the `if`."""
    for call in called(source, function.name.value) if function is not None and above else ():
        statement = source.statement_of(call)
        branch = source.parent(source.parent(statement) or statement)
        if isinstance(branch, cst.If) and not OF_SOME_RANKS.search(source.code(branch.test).replace("__main__", "")):
            branch = None  # it is the same on all ranks: a condition above it tells them apart
        if isinstance(branch, cst.If) and isinstance(branch.body, cst.IndentedBlock) and statement is branch.body.body[0] and branch.orelse is None:
            source.before(branch, source.code(statement))
            source.remove(statement)
            return f"all ranks call {called_name(call)}, which holds the collective of line {line}: it stands before the `if` of its line"
        try:
            return _called_by_all(source, source.enclosing(call, cst.FunctionDef), line, above - 1)
        except NotPossible:
            continue
    raise NotPossible(f"no collective at {source.path.name}:{line} stands under a condition")


def its_rank_not_its_node(source: Source) -> str:
    """torchrun's GROUP_RANK is the number of the node: the same for all ranks on it."""
    found = [node for node in source.all(cst.SimpleString) if node.evaluated_value in ("GROUP_RANK", "NODE_RANK")]
    if len(found) != 1:
        raise NotPossible("no line asks torchrun for the number of the node")
    quote = found[0].value[-1]
    source.replace(found[0], cst.SimpleString(f"{quote}RANK{quote}"))
    return f"line {source.first_line(found[0])} asks for the number of the rank (RANK), not for that of its node"


def as_the_group_says(source: Source) -> str:
    """A sampler that is told its rank asks the process group for it instead."""
    for call in called(source, "DistributedSampler"):
        told = [given for name in ("rank", "num_replicas") if (given := argument(call, None, name)) is not None]
        if told and not any(given.star for given in call.args) and sum(given.keyword is None for given in call.args) == 1:
            kept = [given for given in call.args if given not in told]
            kept[-1] = kept[-1].with_changes(comma=call.args[-1].comma)
            source.edit(call, lambda updated, kept=tuple(kept): updated.with_changes(args=kept))  # type: ignore[misc]
            return f"the sampler in line {source.first_line(call)} asks the process group for its rank"
    raise NotPossible("no DistributedSampler is told a rank")


def through_the_wrapper(source: Source) -> str:
    """`ddp.module(x)` becomes `ddp(x)`; a method that only calls the model itself is given the wrapper for it."""
    wrapped = {
        source.code(target.target) for node in source.all(cst.Assign) for target in node.targets
        if isinstance(node.value, cst.Call) and called_name(node.value) in WRAPPERS
    }  # fmt: skip
    for call in source.all(cst.Call):
        text = source.code(call.func)
        model = next((name for name in wrapped if text == f"{name}.module" or text.startswith(f"{name}.module.")), None)
        if model is None or _without_gradients(source, call):
            continue
        if text == f"{model}.module":
            source.replace(call.func, cst.parse_expression(model))
            return f"line {source.first_line(call)} calls the wrapper, which shares the gradients"
        for owner in source.all(cst.ClassDef):
            for method in (one for one in owner.body.body if isinstance(one, cst.FunctionDef) and text == f"{model}.module.{one.name.value}"):
                if _only_calls_itself(source, method):
                    args = [cst.Arg(cst.parse_expression(model)), *call.args]
                    source.replace(call, cst.Call(cst.parse_expression(f"{owner.name.value}.{method.name.value}"), args))
                    return f"line {source.first_line(call)} gives the wrapper to {method.name.value}, so that its forward shares the gradients"
    raise NotPossible("no call past the wrapper has a form that can be led through it")


def _only_calls_itself(source: Source, method: cst.FunctionDef) -> bool:
    """Whether a method uses its object for nothing but to call it: `self(x)`."""
    if method.decorators or not method.params.params:
        return False
    name = method.params.params[0].name.value
    uses = [node for node in source.all(cst.Name, method.body) if node.value == name]
    return bool(uses) and all(isinstance(above := source.parent(node), cst.Call) and above.func is node for node in uses)


def _without_gradients(source: Source, call: cst.Call) -> bool:
    blocks = [block for block in source.above(call) if isinstance(block, cst.With)]
    return any(called_name(item.item) == "no_grad" for block in blocks for item in block.items if isinstance(item.item, cst.Call))


def wrap_the_rest(source: Source, line: int) -> str:
    """Beside the model that is wrapped in DDP the optimizer holds another one: it is wrapped too."""
    wraps = [
        node for node in source.all(cst.Assign)
        if isinstance(node.value, cst.Call) and called_name(node.value) in WRAPPERS and node.value.args
    ]  # fmt: skip
    wrapped = {source.code(target.target) for node in wraps for target in node.targets}
    for node in source.all(cst.Assign):
        if not isinstance(node.value, cst.Call) or ("optim" not in source.code(node.value.func) and "zero_grad" not in source.code(source.module)):
            continue
        held = [source.code(call.func.value) for call in called(source, "parameters", below=node.value) if isinstance(call.func, cst.Attribute)]
        rest = [name for name in dict.fromkeys(held) if name not in wrapped]
        if wraps and rest and set(held) & wrapped:
            last = wraps[-1]
            assert isinstance(last.value, cst.Call)
            for name in reversed(rest):
                first, *others = last.value.args
                call = last.value.with_changes(args=[first.with_changes(value=cst.parse_expression(name)), *others])
                source.before(source.statement_of(node), f"{name} = {source.code(call)}")
                _through_the_module(source, name, source.first_line(node))
            return f"{', '.join(rest)} {'is' if len(rest) == 1 else 'are'} wrapped in DDP too (before line {source.first_line(node)})"
    raise NotPossible("no model beside the wrapped one was found in the optimizer")


def _through_the_module(source: Source, name: str, line: int) -> None:
    """What a wrapped module has of its own is behind `.module` from here on."""
    for node in source.all(cst.Attribute):
        if source.code(node.value) == name and node.attr.value not in OF_EVERY_MODULE and source.first_line(node) > line:
            rewrite_as(source, node.value, "{x}.module", x=node.value)


def decided_together(source: Source, line: int) -> str:
    """A branch with a collective in it, which each rank takes by numbers of its own: rank 0 decides for all."""
    statement = source.statement_at(line)
    collective = next((call for call in everything(statement) if isinstance(call, cst.Call) and called_name(call) in COLLECTIVES), None)
    if collective is None:
        raise NotPossible(f"{source.path.name}:{line} makes no collective itself")
    package = source.code(collective.func.value) if isinstance(collective.func, cst.Attribute) else "torch.distributed"
    function = source.enclosing(statement, cst.FunctionDef)
    calls = called(source, function.name.value) if function is not None else []
    for place in (statement, *(source.statement_of(call) for call in calls)):
        branch = source.parent(source.parent(place) or place)
        if not isinstance(branch, cst.If) or place not in list(branch.body.body) or isinstance(source.parent(branch), cst.If):
            continue
        if OF_SOME_RANKS.search(source.code(branch.test)) or branch.orelse is not None:  # `"__main__"` among them
            continue
        name = next(text for text in ("decision", "decided", "rank_zero_decides") if text not in names_in(source.module))
        source.before(branch, f"{name} = [bool({source.code(branch.test)})]", f"{package}.broadcast_object_list({name}, src=0)")
        source.replace(branch.test, cst.parse_expression(f"{name}[0]"))
        if not isinstance(collective.func, cst.Attribute):
            add_import(source, "import torch.distributed", "torch")
        return f"rank 0 decides for all ranks in line {source.first_line(branch)}, so that all make the collective of line {line}, or none"
    raise NotPossible(f"no branch that each rank decides for itself leads to {source.path.name}:{line}")


def wrapped_again(source: Source, line: int) -> str:
    """`model.module.head = …` behind `model = DDP(net)`: the wrapper is made anew, with what is there now."""
    statement = source.statement_at(line)
    targets = [target.target for node in everything(statement) if isinstance(node, cst.Assign) for target in node.targets]
    for target in targets:
        wrapper = source.code(target).partition(".module.")[0]
        for node in source.all(cst.Assign, source.enclosing(statement, cst.FunctionDef) or source.module):
            made = isinstance(node.value, cst.Call) and called_name(node.value) in WRAPPERS and node.value.args
            if wrapper == source.code(target) or not made or source.code(node.targets[0].target) != wrapper or source.first_line(node) > line:
                continue
            assert isinstance(node.value, cst.Call)
            inner = node.value.args[0].with_changes(value=cst.parse_expression(f"{wrapper}.module"))
            again = node.with_changes(value=node.value.with_changes(args=[inner, *node.value.args[1:]]))
            source.after(statement, source.module.code_for_node(again))
            return f"{wrapper} is wrapped in DDP again behind line {line}, so that the new part gets the gradients of all ranks"
    raise NotPossible(f"{source.path.name}:{line} puts no new part into a model that is wrapped")


def leave_together(desk: Desk, finding: Diagnosed) -> str:
    """A loop that each rank leaves by numbers of its own (early stopping): rank 0 decides for all."""
    for source, line in desk.lines(finding):
        for loop in _loops_that_lead_to(source, line):
            exits = [branch for branch in _branches_of(loop) if branch.orelse is None and _leaves(branch)]
            decided = [branch for branch in exits if called(source, *COLLECTIVES, below=branch.test)]
            if len(exits) != 1 or decided:
                continue
            branch = exits[0]
            package = _distributed(source)
            name = next(text for text in ("leaving", "all_leave", "rank_zero_leaves") if text not in names_in(source.module))
            source.before(branch, f"{name} = [bool({source.code(branch.test)})]", f"{package}.broadcast_object_list({name}, src=0)")
            source.replace(branch.test, cst.parse_expression(f"{name}[0]"))
            return f"rank 0 decides for all ranks in line {source.first_line(branch)} whether the loop ends, so that all leave it, or none"
    raise NotPossible("no single condition by which a rank leaves a loop was found around these lines")


def _loops_that_lead_to(source: Source, line: int) -> list[cst.For | cst.While]:
    """The loops around a line, and around the calls of the function that it is in, inner ones first."""
    statement = source.statement_at(line)
    function = source.enclosing(statement, cst.FunctionDef)
    calls = called(source, function.name.value) if function is not None else []
    loops: list[cst.For | cst.While] = []
    for place in (statement, *(source.statement_of(call) for call in calls)):
        loops += [above for above in source.above(place) if isinstance(above, (cst.For, cst.While))]
    return list(dict.fromkeys(loops))


def _branches_of(block: cst.CSTNode) -> list[cst.If]:
    """The conditions of a loop, and not those of loops or functions within it."""
    found: list[cst.If] = []
    for child in block.children:
        if isinstance(child, cst.If):
            found.append(child)
        if not isinstance(child, (cst.For, cst.While, cst.FunctionDef, cst.ClassDef)):
            found += _branches_of(child)
    return found


def _leaves(branch: cst.If) -> bool:
    """Whether a branch ends the loop: a break or return of its own, not of a branch within it."""
    lines = branch.body.body if isinstance(branch.body, cst.IndentedBlock) else [branch.body]
    simple = [line for line in lines if isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite))]
    return any(isinstance(part, (cst.Break, cst.Return)) for line in simple for part in line.body)


def load_on_all(source: Source, line: int) -> str:
    """Weights that one rank alone loads are loaded by all."""
    statement = source.statement_at(line)
    branch = source.enclosing(statement, cst.If)
    if (
        not called_names(statement) & {"load_state_dict", "load", "copy_"}
        or branch is None
        or "rank" not in source.code(branch.test)
    ):
        raise NotPossible("the weights are not loaded under a condition on the rank")
    unwrap(source, branch)
    return f"all ranks load the weights in line {line}"


def called_names(statement: cst.CSTNode) -> set[str]:
    return {called_name(call) for call in everything(statement) if isinstance(call, cst.Call)}


def broadcast_before_the_optimizer(source: Source) -> str:
    """Rank 0's weights go to all before the optimizer is built."""
    for node in source.all(cst.Assign):
        if not isinstance(node.value, cst.Call):
            continue
        given = argument(node.value, 0, "params")
        if given is None or not (isinstance(given.value, cst.Call) and called_name(given.value) == "parameters"):
            continue
        func = given.value.func
        if isinstance(func, cst.Attribute):
            name = _distributed(source)
            model = source.code(func.value)
            source.before(
                source.statement_of(node),
                f"for parameter in {model}.state_dict().values():\n    {name}.broadcast(parameter, src=0)\n",
            )
            return f"all ranks begin with the weights of rank 0 (before line {source.first_line(node)})"
    raise NotPossible("the line that builds the optimizer was not found")


def _distributed(source: Source) -> str:
    if imported(source, "dist"):
        return "dist"
    if "torch.distributed" in source.code(source.module):
        return "torch.distributed"
    raise NotPossible("torch.distributed is not imported here")
