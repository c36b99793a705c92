"""Cures `stall/optimizer-never-steps` and `stall/gradients-never-cleared`: the call is made, and its condition can come true."""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import called, function_or_module, grouped, iterated, loop_around, rewrite_as
from trainsleuth.remedies.gradients_discarded import behind_the_scaler, looks_like_a_step, stepped
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything


def call_the_step(source: Source, line: int) -> str:
    """`optimizer.step` without parentheses."""
    return _with_parentheses(source, source.statement_at(line), "step", line)


def call_the_clearing(source: Source, line: int) -> str:
    """`optimizer.zero_grad` or `p.grad.zero_` without parentheses, in the function that steps."""
    return _with_parentheses(source, function_or_module(source, source.statement_at(line)), "zero_grad|zero_", line)


def call_eval(source: Source, line: int) -> str:
    """`model.eval` without parentheses."""
    return _with_parentheses(source, source.statement_at(line), "eval", line)


def _with_parentheses(source: Source, scope: cst.CSTNode, name: str, line: int) -> str:
    for node in everything(scope):
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.Attribute) and re.fullmatch(name, node.value.attr.value):
            source.replace(node.value, cst.Call(func=node.value))
            return f"{source.code(node)} in line {source.first_line(node)} is called: it had no parentheses"
    raise NotPossible(f"no {name} without parentheses near {source.path.name}:{line}")


def condition_can_be_true(source: Source, line: int) -> str:
    """`if torch.isfinite(loss) is True` compares a tensor with an object; its truth is what was meant."""
    for block in _conditions(source, line):
        for node in everything(block.test):
            if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
                continue
            operator, right = node.comparisons[0].operator, node.comparisons[0].comparator
            if isinstance(operator, cst.Is) and m.matches(right, m.Name("True")):
                source.replace(node, node.left)
            elif isinstance(operator, cst.Is) and m.matches(right, m.Name("False")):
                rewrite_as(source, node, "not {x}", x=grouped(node.left))
            else:
                continue
            return f"the condition in line {source.first_line(block)} asks for the truth of the value, not for the object True"
    raise NotPossible(f"no condition around {source.path.name}:{line} compares with `is True`")


def _conditions(source: Source, line: int) -> list[cst.If]:
    """The `if` at a line, and those around it."""
    statement = source.statement_at(line)
    return [block for block in (statement, *source.above(statement)) if isinstance(block, cst.If)]


def also_at_the_end_of_the_loader(source: Source, line: int) -> str:
    """`(i + 1) % every == 0` is never true where the loader has fewer batches than that: step with its last batch too."""
    for block in _conditions(source, line):
        counted = _counted(source, block)
        loop = loop_around(source, block)
        hook = source.enclosing(block, cst.FunctionDef)
        if counted is not None and loop is None and hook is not None and hook.name.value == "training_step":
            rewrite_as(source, block.test, "{x} or self.trainer.is_last_batch", x=block.test)
            return f"the optimizer also steps with the last batch of an epoch (line {source.first_line(block)})"
        if counted is None or not isinstance(loop, cst.For) or not m.matches(loop.iter, m.Call(func=m.Name("enumerate"))):
            continue
        index = loop.target.elements[0].value if isinstance(loop.target, cst.Tuple) else None
        if index is None or source.code(index) not in source.code(block.test):
            continue
        assert isinstance(loop.iter, cst.Call)
        begins_at_one = len(loop.iter.args) > 1 and source.code(loop.iter.args[1].value) == "1"
        last = source.code(index) if begins_at_one else f"{source.code(index)} + 1"
        end = cst.parse_expression(f"{last} == len({source.code(iterated(loop))})")
        rewrite_as(source, block.test, "{x} or {y}", x=block.test, y=end)
        return f"the optimizer also steps with the last batch of the loader (line {source.first_line(block)})"
    raise NotPossible(f"no condition around {source.path.name}:{line} counts batches")


def left_to_accelerate(source: Source, line: int) -> str:
    """Accelerate counts micro-batches itself: what stands under a count of the program's own is called each time."""
    for block in _conditions(source, line):
        accumulating = [
            above for above in source.above(block)
            if isinstance(above, cst.With) and any(called(source, "accumulate", below=item) for item in above.items)
        ]  # fmt: skip
        if not accumulating or block.orelse is not None or not isinstance(block.body, cst.IndentedBlock):
            continue
        if "sync_gradients" in source.code(block.test) or not any(isinstance(part, cst.Modulo) for part in everything(block.test)):
            continue
        first = source.first_line(block)
        source.edit(block, lambda updated: cst.FlattenSentinel(updated.body.body))  # type: ignore[attr-defined]
        return f"what stood under the condition in line {first} is called for every micro-batch: Accelerate lets it through when it is due"
    raise NotPossible(f"no count of micro-batches stands around {source.path.name}:{line} in an `accumulate` block")


def when_gradients_are_complete(source: Source, line: int) -> str:
    """Inside `accelerator.accumulate(model)` a count of the program's own meets accelerate's count never: ask accelerate."""
    for block in _conditions(source, line):
        steps = [call for call in called(source, "step", below=block.body) if looks_like_a_step(source, call)]
        counting = _counting_part(source, block.test)
        owner = _accumulating(source, block)
        if not steps or counting is None or not owner:
            continue
        source.replace(counting, cst.parse_expression(f"{owner}.sync_gradients"))
        return f"the step in line {source.first_line(steps[0])} comes when {owner} has accumulated, not by a count of its own"
    raise NotPossible(f"no condition around {source.path.name}:{line} counts batches inside of accelerate's accumulate")


def _counting_part(source: Source, test: cst.BaseExpression) -> cst.BaseExpression | None:
    """The part of a condition that counts batches, itself or by a name that was given such a count."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        found = [part for side in (test.left, test.right) if (part := _counting_part(source, side)) is not None]
        return found[0] if len(found) == 1 else None
    if isinstance(test, cst.Name):
        made = [node.value for node in source.all(cst.Assign, function_or_module(source, test)) if source.code(node.targets[0].target) == test.value]
        return test if len(made) == 1 and _counting_part(source, made[0]) is not None else None
    if "sync_gradients" in source.code(test):
        return None
    counts = any(m.matches(node, m.BinaryOperation(operator=m.Modulo())) for node in everything(test))
    return test if counts and not any(isinstance(node, cst.Call) and called_name(node) != "len" for node in everything(test)) else None


def _accumulating(source: Source, block: cst.If) -> str:
    """The accelerator whose `accumulate` stands around a condition, or before it in the same loop."""
    loop = loop_around(source, block)
    around = [found for found in source.above(block) if isinstance(found, cst.With)]
    beside = [found for found in source.all(cst.With, loop) if found not in around] if loop is not None else []
    for holder in (*around, *beside):
        for item in holder.items:
            if m.matches(item.item, m.Call(func=m.Attribute(attr=m.Name("accumulate")))):
                return source.code(item.item.func.value)  # type: ignore[attr-defined]
    return ""


def _counted(source: Source, block: cst.If) -> cst.CSTNode | None:
    return next((node for node in everything(block.test) if m.matches(node, m.BinaryOperation(operator=m.Modulo()))), None)


def step_after_backward(source: Source, line: int) -> str:
    """Nothing calls the optimizer's step in this file: call it behind the backward."""
    backwards = called(source, "backward")
    built = _built_optimizers(source)
    if any(looks_like_a_step(source, call) for call in called(source, "step")) or len(backwards) != 1 or len(built) != 1:
        raise NotPossible("where the step belongs cannot be told")
    statement = source.statement_of(backwards[0])
    home = source.enclosing(statement, cst.FunctionDef)
    name = built[0][0]
    if built[0][1] is not home and not name.startswith("self."):
        raise NotPossible("the optimizer is not known where backward is called")
    source.after(statement, f"{name}.step()", f"{name}.zero_grad()")
    return f"{name} steps after the backward in line {source.first_line(statement)}"


def _built_optimizers(source: Source) -> list[tuple[str, cst.FunctionDef | None]]:
    found = []
    for node in source.all(cst.Assign):
        if isinstance(node.value, cst.Call) and re.search(
            r"(?i)(optim|^)\w*\.?(sgd|adam\w*|rmsprop|adagrad|lion)$", source.code(node.value.func)
        ):
            found.append((source.code(node.targets[0].target), source.enclosing(node, cst.FunctionDef)))
    return found


def clear_after_the_step(source: Source, line: int) -> str:
    """Gradients are cleared right behind the step."""
    statement = source.statement_at(line)
    steps = [call for call in everything(statement) if isinstance(call, cst.Call) and called_name(call) == "step"]
    step = next((call for call in steps if looks_like_a_step(source, call)), None)
    if step is None:
        raise NotPossible(f"{source.path.name}:{line} does not step an optimizer itself")
    name = stepped(source, step)
    source.after(behind_the_scaler(source, source.statement_of(step)), f"{name}.zero_grad()")
    return f"the gradients are cleared after the step in line {source.first_line(step)}"
