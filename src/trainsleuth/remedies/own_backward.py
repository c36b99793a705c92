"""Cures `autograd/custom-backward-wrong`: the program's own autograd Function becomes a plain one, whose backward autograd derives."""

from __future__ import annotations

import builtins
import re

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import is_bound
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, names_in

FOR_AUTOGRAD = ("backward", "vjp", "jvp", "vmap", "setup_context")
FOR_CONTEXT = ("save_for_backward", "save_for_forward", "mark_non_differentiable", "set_materialize_grads")
STEPS = (
    "round", "sign", "sgn", "floor", "ceil", "trunc", "fix", "argmax", "argmin", "argsort", "heaviside", "bucketize", "searchsorted", "one_hot",
    "gt", "ge", "lt", "le", "eq", "ne", "bernoulli", "int", "long", "short", "char", "byte", "bool", "topk", "multinomial",
)  # fmt: skip
OUTSIDE = ("detach", "no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "numpy", "from_numpy", "tolist", "item", "apply")
WHOLE = re.compile(r"torch\.(u?int|long|short|bool)")
INNER = re.compile(r"\.ops\.|\._(?!_)")  # operators of an extension, and torch's private functions
SAME = ("view_as", "clone", "view", "contiguous", "expand_as", "alias")


def left_to_autograd(source: Source, line: int) -> str:
    """The class loses its base and its backward, and its forward is what `apply` calls."""
    statement = source.statement_at(line)
    owner = statement if isinstance(statement, cst.ClassDef) else source.enclosing(statement, cst.ClassDef)
    if owner is None or [source.code(base.value).rpartition(".")[2] for base in owner.bases] != ["Function"]:
        raise NotPossible(f"{source.path.name}:{line} does not lie in a class that is an autograd Function and nothing else")
    methods = {method.name.value: method for method in owner.body.body if isinstance(method, cst.FunctionDef)}
    forward = methods.get("forward")
    if forward is None or "apply" in methods:
        raise NotPossible(f"{owner.name.value} has no forward of its own")
    _used_by_apply_only(source, owner, methods)
    plain = _without_context(source, owner, forward, has_context="setup_context" not in methods)
    _autograd_can_do_it(source, forward, plain, set())
    source.replace(forward, plain)
    for name in FOR_AUTOGRAD:
        if name in methods:
            source.edit(methods[name], lambda _: cst.RemoveFromParent())
    source.edit(owner, lambda updated: updated.with_changes(bases=[], lpar=cst.MaybeSentinel.DEFAULT, rpar=cst.MaybeSentinel.DEFAULT))
    return f"the backward of {owner.name.value} is left to autograd: what it applies are plain operations (line {source.first_line(owner)})"


def _used_by_apply_only(source: Source, owner: cst.ClassDef, methods: dict[str, cst.FunctionDef]) -> None:
    name = owner.name.value
    gone = {node for method in FOR_AUTOGRAD if method in methods for node in everything(methods[method])}
    for node in everything(source.module):
        if node in gone or not m.matches(node, m.Name(name)):
            continue
        above = source.parent(node)
        if isinstance(above, cst.Call) or (isinstance(above, cst.Arg) and isinstance(source.parent(above), cst.ClassDef)):
            raise NotPossible(f"{name} is made an object, or a class of its own is derived from it (line {source.first_line(node)})")
        if isinstance(above, cst.Attribute) and above.value is node and above.attr.value in ("forward", *FOR_AUTOGRAD):
            raise NotPossible(f"line {source.first_line(node)} calls a method of {name} by its name")


def _without_context(source: Source, owner: cst.ClassDef, forward: cst.FunctionDef, has_context: bool) -> cst.FunctionDef:
    """forward under the name `apply`, without its context and what only serves that."""
    if [source.code(mark.decorator) for mark in forward.decorators] != ["staticmethod"]:
        raise NotPossible(f"the forward of {owner.name.value} is not simply static")
    if not has_context:
        return forward.with_changes(name=cst.Name("apply"))
    if forward.params.posonly_params or not forward.params.params:
        raise NotPossible(f"the forward of {owner.name.value} takes no context by its name")
    context = forward.params.params[0].name.value
    body = forward.body.visit(_Forgets(context))
    assert isinstance(body, cst.BaseSuite)
    if context in names_in(body):
        raise NotPossible(f"the forward of {owner.name.value} reads its context, or hands it on")
    params = forward.params.with_changes(params=forward.params.params[1:])
    return forward.with_changes(name=cst.Name("apply"), params=params, body=body)


class _Forgets(cst.CSTTransformer):
    """Takes out what is said to the context, and conditions that hold nothing else."""

    def __init__(self, context: str) -> None:
        super().__init__()
        self._attribute = m.Attribute(value=m.Name(context))
        self._said = m.Call(func=m.Attribute(value=m.Name(context), attr=m.OneOf(*(m.Name(name) for name in FOR_CONTEXT))))

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.Expr | cst.RemovalSentinel:
        return cst.RemoveFromParent() if m.matches(original_node.value, self._said) else updated_node

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign | cst.RemovalSentinel:
        left = [target for target in updated_node.targets if not self._is_kept_for_backward(target.target)]
        return updated_node.with_changes(targets=left) if left else cst.RemoveFromParent()

    def _is_kept_for_backward(self, target: cst.BaseExpression) -> bool:
        parts = [element.value for element in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
        return all(m.matches(part, self._attribute) for part in parts)

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If | cst.RemovalSentinel:
        return updated_node if updated_node.body.body or updated_node.orelse is not None else cst.RemoveFromParent()


def _autograd_can_do_it(source: Source, forward: cst.FunctionDef, plain: cst.FunctionDef, seen: set[str]) -> None:
    """Functions with steps, with kernels of their own or with writing in place exist because autograd cannot derive them."""
    name = forward.name.value
    if names_in(plain) & {"np", "numpy", "cupy", "triton"}:
        raise NotPossible(f"{name} computes outside of torch")
    local, imported = _local_names(source, forward), _from_torch(source)
    untouched = local - {node.value for node in source.all(cst.Name, forward.body) if is_bound(source, node)}
    if all(_is_the_input(node.value, untouched) for node in everything(plain) if isinstance(node, cst.Return)):
        raise NotPossible(f"{name} gives back what it gets: its backward is there on purpose")
    for node in everything(plain):
        if isinstance(node, (cst.AugAssign, cst.Del)) or (isinstance(node, cst.AssignTarget) and not isinstance(node.target, (cst.Name, cst.Tuple))):
            raise NotPossible(f"{name} writes in place")
        if isinstance(node, cst.Attribute) and node.attr.value == "data":
            raise NotPossible(f"{name} cuts the graph (.data)")
        if isinstance(node, cst.Call):
            _call_can_be_derived(source, node, name, local, imported, seen)
    compared = _comparisons(plain)
    if compared:
        raise NotPossible(f"{name} compares ({source.code(compared[0])}), which has no gradient")


def _call_can_be_derived(source: Source, call: cst.Call, name: str, local: set[str], imported: set[str], seen: set[str]) -> None:
    """Refuse a call that autograd does not see through; a function of the same file is looked into."""
    what, keywords = called_name(call), {given.keyword.value for given in call.args if given.keyword is not None}
    if (what.endswith("_") and not what.endswith("__")) or keywords & {"out", "inplace"}:
        raise NotPossible(f"{name} writes in place ({what})")
    if what in OUTSIDE or (what in STEPS and isinstance(call.func, cst.Attribute)):
        raise NotPossible(f"{name} calls {what}, which autograd does not go through")
    if what in ("round", "float", "tensor", "as_tensor") and any(names_in(given.value) for given in call.args):
        raise NotPossible(f"{name} makes numbers of tensors ({source.code(call)}), which cuts the graph")
    if what in ("to", "type") and WHOLE.search(source.code(call)):
        raise NotPossible(f"{name} makes whole numbers, which have no gradient")
    plainly = isinstance(call.func, cst.Name)
    root = _root(call.func)
    allowed = root in imported or (hasattr(builtins, what) and root not in local if plainly else root in local)
    if allowed and not INNER.search(source.code(call.func)):
        return
    own = [function for function in source.function_named(what) if plainly and source.enclosing(function, cst.ClassDef) is None]
    if len(own) != 1:
        raise NotPossible(f"{name} calls {source.code(call.func)}, which may be no torch")
    if what not in seen:
        _autograd_can_do_it(source, own[0], own[0], {*seen, what})


def _root(node: cst.BaseExpression) -> str | None:
    """`x` of `x.a(1).b`; something that is no name is computed here, and looked at by itself."""
    while isinstance(node, (cst.Attribute, cst.Call, cst.Subscript)):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Subscript):
            return None
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else ""


def _from_torch(source: Source) -> set[str]:
    """Names that the file imports from torch, and the module math."""
    found = {""}
    for node in source.all(cst.BaseSmallStatement):  # type: ignore[type-abstract]
        if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
            continue
        if isinstance(node, (cst.Import, cst.ImportFrom)):
            module = source.code(node.module) if isinstance(node, cst.ImportFrom) and node.module is not None else ""
            for alias in node.names:  # type: ignore[union-attr]
                dotted = module or source.code(alias.name)
                if dotted.split(".")[0] in ("torch", "math", "einops"):
                    found.add(source.code(alias.asname.name) if alias.asname is not None else source.code(alias.name).split(".")[0])
    return found


def _local_names(source: Source, function: cst.FunctionDef) -> set[str]:
    """Parameters, and what is given a value inside."""
    bound = {node.value for node in source.all(cst.Name, function.body) if is_bound(source, node)}
    return bound | {parameter.name.value for parameter in source.all(cst.Param, function)}


def _is_the_input(node: cst.BaseExpression | None, inputs: set[str]) -> bool:
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in SAME:
        node = node.func.value
    return node is None or (isinstance(node, cst.Name) and node.value in inputs)


def _comparisons(node: cst.CSTNode) -> list[cst.Comparison]:
    """Comparisons of values, other than in conditions and in the first place of `where` and `masked_fill`."""
    if isinstance(node, cst.Comparison):
        return [] if any(isinstance(part.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for part in node.comparisons) else [node]
    left = list(node.children)
    if isinstance(node, (cst.If, cst.IfExp, cst.While, cst.Assert, cst.CompIf)):
        left.remove(node.test)
    if isinstance(node, cst.Call) and called_name(node) in ("where", "masked_fill") and node.args:
        left.remove(node.args[0])
    return [found for child in left for found in _comparisons(child)]
