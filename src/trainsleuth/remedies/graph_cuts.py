"""Cures `stall/no-gradient`: the expression or the block that cuts the graph is taken away."""

from __future__ import annotations

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import argument, assignments, called, calls_at, number_of, put_on, rewrite_as, unwrap
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, is_method_call

FLAT = ("sign", "round", "floor", "ceil", "trunc")
NO_GRADIENTS = ("no_grad", "inference_mode", "set_grad_enabled")
MOVES = ("cpu", "detach", "numpy", "float", "to", "clone", "contiguous")
SAME_IN_TORCH = {"mean": "mean", "sum": "sum", "amax": "amax", "amin": "amin", "prod": "prod", "std": "std", "abs": "abs",
                 "exp": "exp", "log": "log", "tanh": "tanh", "sqrt": "sqrt", "square": "square"}  # fmt: skip


def uncut(source: Source, line: int) -> str:
    """Take the cut out of the statement at this line, or the block around it that switches gradients off."""
    statement = source.statement_at(line)
    scope = statement if not isinstance(statement, (cst.With, cst.FunctionDef, cst.For, cst.If, cst.ClassDef)) else None
    for node in everything(scope) if scope is not None else ():
        said = _numpy(source, node) or _listed_items(source, node)
        if said:
            return f"line {line} {said}"
    for node in everything(scope) if scope is not None else ():
        if isinstance(node, cst.Call) and is_method_call(node, "detach") and isinstance(node.func, cst.Attribute):
            source.replace(node, node.func.value)
            return f"line {line} keeps the graph: no .detach()"
        if isinstance(node, cst.Attribute) and node.attr.value == "data" and _is_tensor(source, node):
            source.replace(node, node.value)
            return f"line {line} keeps the graph: no .data"
    return gradients_on(source, line)


def straight_through(source: Source, line: int) -> str:
    """`torch.sign(x)`, `x.round()`: the value as it is, the gradient as if nothing was rounded."""
    for call in calls_at(source, line, *FLAT):
        of_torch = isinstance(call.func, cst.Attribute) and source.code(call.func.value) == "torch"
        given = argument(call, 0, "input") if of_torch else None
        inner = given.value if given is not None else call.func.value if isinstance(call.func, cst.Attribute) else None
        if inner is None or len(call.args) > (1 if of_torch else 0) or not isinstance(inner, (cst.Name, cst.Attribute)):
            continue
        rewrite_as(source, call, "({x} + ({y} - {x}).detach())", x=inner, y=call)
        return f"the {called_name(call)} of line {line} passes its gradient straight through"
    raise NotPossible(f"{source.path.name}:{line} rounds no tensor that has a name")


def detached_for_the_first_only(source: Source, line: int) -> str:
    """`fake = G(z).detach()`, used by two losses with a backward each: the first loss, which is the critic's, gets it detached."""
    statement = source.statement_at(line)
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    if not isinstance(small, cst.Assign) or not isinstance(small.targets[0].target, cst.Name) or not is_method_call(small.value, "detach"):
        raise NotPossible(f"{source.path.name}:{line} gives no detached tensor a name")
    name = small.targets[0].target.value
    later = [one for one in source.block_of(statement) if source.first_line(one) > source.first_line(statement)]
    backwards = [number for number, one in enumerate(later) if any(is_method_call(node, "backward") for node in everything(one))]
    uses = [(number, node) for number, one in enumerate(later) for node in everything(one) if m.matches(node, m.Name(name))]
    first = [node for number, node in uses if backwards and number <= backwards[0]]
    if len(backwards) < 2 or not first or not any(number > backwards[0] for number, _ in uses):
        raise NotPossible(f"{name} is not used by two losses of the same block, each with its backward")
    assert isinstance(small.value, cst.Call)
    assert isinstance(small.value.func, cst.Attribute)
    source.replace(small.value, small.value.func.value)
    for node in first:
        assert isinstance(node, cst.Name)
        put_on(source, node, "detach()")
    return f"{name} keeps its graph, and only the first loss gets it detached (lines {line} and {source.first_line(first[0])})"


def gradients_on(source: Source, line: int) -> str:
    """The `no_grad` block or decorator around, or at, the line goes."""
    for function in source.all(cst.FunctionDef):
        if any(source.covers(entry, line) for entry in function.decorators):
            return _undecorated(source, function)
    statement = source.statement_at(line)
    for block in (statement, *source.above(statement)):
        if isinstance(block, cst.With) and _switches_off(block):
            if len(block.items) > 1:
                items = [item for item in block.items if not _is_switch(item.item)]
                items[-1] = items[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
                source.edit(block, lambda updated: updated.with_changes(items=items))
            else:
                unwrap(source, block)
            return f"the block in line {source.first_line(block)} runs with gradients"
        if isinstance(block, cst.FunctionDef) and any(_is_switch(entry.decorator) for entry in block.decorators):
            return _undecorated(source, block)
    for call in everything(statement):
        for function in source.function_named(called_name(call)) if isinstance(call, cst.Call) else ():
            if any(_is_switch(entry.decorator) for entry in function.decorators):
                return _undecorated(source, function)
    raise NotPossible(f"nothing at {source.path.name}:{line} cuts the graph in a form that can be taken away")


def _undecorated(source: Source, function: cst.FunctionDef) -> str:
    left = [entry for entry in function.decorators if not _is_switch(entry.decorator)]
    if len(left) == len(function.decorators):
        raise NotPossible("the decorator does not switch gradients off")
    source.edit(function, lambda updated: updated.with_changes(decorators=left))
    return f"{function.name.value} runs with gradients: its decorator is taken away"


def _switches_off(block: cst.With) -> bool:
    return any(_is_switch(item.item) for item in block.items)


def _is_switch(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        if called_name(node) == "set_grad_enabled":
            return bool(node.args) and m.matches(node.args[0].value, m.Name("False"))
        return called_name(node) in NO_GRADIENTS
    return isinstance(node, (cst.Attribute, cst.Name)) and (
        node.attr.value if isinstance(node, cst.Attribute) else node.value
    ) in ("no_grad", "inference_mode")


def _is_tensor(source: Source, node: cst.Attribute) -> bool:
    """`z.data` that is read, not `p.data = …` and not the module `torch.utils.data`."""
    parent = source.parent(node)
    return not isinstance(parent, (cst.Attribute, cst.AssignTarget, cst.ImportAlias)) and source.code(node.value) not in (
        "torch.utils", "utils",
    )  # fmt: skip


def _numpy(source: Source, node: cst.CSTNode) -> str:
    """`torch.from_numpy(np.mean(h.cpu().data.numpy(), axis=1))` becomes `h.mean(dim=1)`."""
    if not (isinstance(node, cst.Call) and called_name(node) in ("from_numpy", "tensor", "as_tensor") and node.args):
        return ""
    inner = node.args[0].value
    if not (isinstance(inner, cst.Call) and isinstance(inner.func, cst.Attribute)):
        return ""
    if _through_numpy(inner):
        rewrite_as(source, node, "{x}", x=_before_numpy(inner))
        return "stays in torch, where the graph is kept"
    name = called_name(inner)
    if source.code(inner.func.value) not in ("np", "numpy") or name not in SAME_IN_TORCH or not inner.args:
        return ""
    if not _through_numpy(inner.args[0].value):
        return ""
    axis = argument(inner, 1, "axis")
    if len(inner.args) > 2 or (len(inner.args) == 2 and (axis is None or number_of(axis.value) is None)):
        return ""
    where = f"dim={source.code(axis.value)}" if axis is not None else ""
    rewrite_as(source, node, f"{{x}}.{SAME_IN_TORCH[name]}({where})", x=_before_numpy(inner.args[0].value))
    return "stays in torch, where the graph is kept"


def _through_numpy(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and is_method_call(node, "numpy")


def _before_numpy(node: cst.BaseExpression) -> cst.BaseExpression:
    """`h` of `h.detach().cpu().numpy()`."""
    while True:
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and called_name(node) in MOVES:
            node = node.func.value
        elif isinstance(node, cst.Attribute) and node.attr.value == "data":
            node = node.value
        else:
            return node


def _listed_items(source: Source, node: cst.CSTNode) -> str:
    """`torch.tensor([f(x).item() for x in xs])` becomes `torch.stack([f(x) for x in xs])`, nested lists as well."""
    if not (isinstance(node, cst.Call) and called_name(node) in ("tensor", "FloatTensor", "as_tensor") and node.args):
        return ""
    if not isinstance(node.args[0].value, (cst.ListComp, cst.List)):
        return ""
    stacked = _stacked(source, node.args[0].value)
    if stacked is None:
        return ""
    source.replace(node, stacked)
    return "stacks tensors instead of their numbers, so the graph is kept"


def _stacked(source: Source, node: cst.BaseExpression) -> cst.BaseExpression | None:
    if isinstance(node, cst.ListComp):
        inner = _stacked(source, node.elt)
        return None if inner is None else _stack(source, node.with_changes(elt=inner))
    if isinstance(node, cst.List):
        parts = [_stacked(source, element.value) for element in node.elements]
        if not parts or any(part is None for part in parts):
            return None
        elements = [element.with_changes(value=part) for element, part in zip(node.elements, parts)]
        return _stack(source, node.with_changes(elements=elements))
    listed = is_method_call(node, "item") or is_method_call(node, "tolist")
    if isinstance(node, cst.Call) and listed and isinstance(node.func, cst.Attribute):
        return node.func.value
    return None


def listed_first(source: Source, line: int) -> str:
    """`rows = [f(x).tolist() for x in xs]`, and later `torch.tensor(rows)`: the rows stay tensors and are stacked."""
    for node in everything(source.statement_at(line)):
        if not isinstance(node, cst.Assign) or not isinstance(node.value, cst.ListComp) or not isinstance(node.targets[0].target, cst.Name):
            continue
        kept = _stacked(source, node.value.elt)
        name, function = node.targets[0].target.value, source.enclosing(node, cst.FunctionDef)
        made = [call for call in called(source, "tensor", "FloatTensor", "as_tensor", below=function or source.module)
                if call.args and source.code(call.args[0].value) == name]  # fmt: skip
        if kept is not None and len(made) == 1:
            source.replace(node.value.elt, kept)
            source.replace(made[0], cst.parse_expression(f"torch.stack({name})"))
            return f"line {source.first_line(made[0])} stacks the tensors of line {line} instead of their numbers, so the graph is kept"
    raise NotPossible(f"{source.path.name}:{line} makes no list of numbers that becomes a tensor again")


def _stack(source: Source, node: cst.BaseExpression) -> cst.BaseExpression:
    return cst.Call(func=cst.parse_expression("torch.stack"), args=[cst.Arg(node)])


def reparameterised(source: Source, line: int) -> str:
    """`q.sample()` becomes `q.rsample()`."""
    found = [call for call in calls_at(source, line, "sample") if isinstance(call.func, cst.Attribute)]
    if len(found) != 1:
        raise NotPossible(f"{source.path.name}:{line} does not draw one sample itself")
    func = cst.ensure_type(found[0].func, cst.Attribute)
    source.replace(func.attr, cst.Name("rsample"))
    return f"line {line} draws by rsample(), so that gradients pass"


def buffer_of_tensors(source: Source, line: int) -> str:
    """Tensors that are copied into a numpy array which becomes a tensor again: the array is a tensor from the start."""
    statement = source.statement_at(line)
    written = next((node for node in everything(statement) if isinstance(node, cst.Assign)), None)
    target = written.targets[0].target if written is not None else None
    home = source.enclosing(statement, cst.FunctionDef) or source.module
    if written is None or not isinstance(target, cst.Subscript) or not isinstance(target.value, cst.Name):
        raise NotPossible(f"{source.path.name}:{line} writes into no array of its own")
    name = target.value.value
    made = [value for to, value in assignments(source, home) if source.code(to) == name and isinstance(value, cst.Call)
            and called_name(value) in ("zeros", "empty", "ones", "full") and source.code(value.func).startswith(("np.", "numpy."))]  # fmt: skip
    back = [call for call in called(source, "from_numpy", "tensor", "as_tensor", "FloatTensor", below=home)
            if call.args and source.code(call.args[0].value) == name]  # fmt: skip
    tensor = _behind_its_copies(written.value)
    if len(made) != 1 or not back or tensor is None:
        raise NotPossible(f"{name} is no numpy array that is made, filled and given to torch in one function")
    shape = source.code(made[0].args[0].value)
    filled = f", {source.code(made[0].args[1].value)}" if called_name(made[0]) == "full" else ""
    source.replace(made[0], cst.parse_expression(f"torch.{called_name(made[0])}({shape}{filled})"))
    source.replace(written.value, tensor)
    for call in back:
        source.replace(call, cst.Name(name))
    return f"{name} is a tensor from the start (line {source.first_line(made[0])}), so that line {line} keeps the graph"


def _behind_its_copies(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """`c` of `np.asarray(c.detach().cpu().tolist(), dtype=…)`."""
    changed = False
    while isinstance(value, cst.Call):
        name = called_name(value)
        if name in ("asarray", "array") and value.args:
            value = value.args[0].value
        elif name in (*MOVES, "tolist") and isinstance(value.func, cst.Attribute):
            changed = changed or name in ("tolist", "numpy", "detach")
            value = value.func.value
        else:
            return None
    return value if changed and isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)) else None
