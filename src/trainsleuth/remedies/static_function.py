"""Autograd Functions in the old form become static: what `__init__` kept is passed to `apply` behind the inputs."""

from __future__ import annotations

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import called
from trainsleuth.remedies.source import NotPossible, Source, everything

SUPER = m.SimpleStatementLine(body=[m.Expr(m.Call(func=m.Attribute(attr=m.Name("__init__"))))])


def static_function(source: Source) -> str:
    """forward and backward of a Function become static, and it is called by `apply`."""
    said = []
    for owner in source.all(cst.ClassDef):
        if not any(source.code(base.value).rpartition(".")[2] == "Function" for base in owner.bases):
            continue
        methods = {f.name.value: f for f in source.all(cst.FunctionDef, owner) if source.enclosing(f, cst.ClassDef) is owner}
        loose = [methods[name] for name in ("forward", "backward") if name in methods and not methods[name].decorators]
        if not loose:
            continue
        settings = _settings(owner, methods)
        _calls_by_apply(source, owner.name.value, settings)
        if settings:
            _settings_as_inputs(source, methods, settings)
        for function in loose:
            first = methods["__init__"] if settings and function is methods["forward"] else function
            mark = cst.Decorator(cst.Name("staticmethod"), leading_lines=first.leading_lines)
            source.edit(function, lambda updated, mark=mark: updated.with_changes(decorators=[mark], leading_lines=[]))  # type: ignore[misc]
        said.append(owner.name.value)
    if not said:
        raise NotPossible("no Function with methods that are not static was found")
    return f"{', '.join(said)} has static methods and is called by apply"


def _settings(owner: cst.ClassDef, methods: dict[str, cst.FunctionDef]) -> list[cst.Param]:
    """What `__init__` takes."""
    if "__init__" not in methods:
        return []
    forward, init = methods.get("forward"), methods["__init__"].params
    plain = not isinstance(init.star_arg, cst.Param) and init.star_kwarg is None and not init.kwonly_params
    inputs = None if forward is None else forward.params
    if inputs is None or not plain or isinstance(inputs.star_arg, cst.Param) or inputs.star_kwarg is not None or inputs.kwonly_params:
        raise NotPossible(f"{owner.name.value} keeps settings of its own, which a static function must be passed")
    names = [param.name.value for param in inputs.params]
    if any(param.name.value in names for param in init.params[1:]) or any(param.default is not None for param in inputs.params):
        raise NotPossible(f"{owner.name.value} has settings and inputs that cannot be put one behind the other")
    return list(init.params[1:])


def _calls_by_apply(source: Source, name: str, settings: list[cst.Param]) -> None:
    for call in called(source, name):
        given = _in_order(source, call, settings)
        outer = source.parent(call)
        if isinstance(outer, cst.Call) and outer.func is call and not any(each.keyword or each.star for each in outer.args):
            inputs = ", ".join([*(source.code(each.value) for each in outer.args), *given])
            source.replace(outer, cst.parse_expression(f"{name}.apply({inputs})"))
        elif given:
            source.replace(call, cst.parse_expression(f"(lambda *inputs: {name}.apply({', '.join(['*inputs', *given])}))"))
        else:
            source.replace(call, cst.parse_expression(f"{name}.apply"))


def _in_order(source: Source, call: cst.Call, settings: list[cst.Param]) -> list[str]:
    """The settings of one call, by position; those after the last one that is given keep their defaults."""
    by_name = {each.keyword.value: source.code(each.value) for each in call.args if each.keyword is not None}
    positional = [each for each in call.args if each.keyword is None]
    if any(each.star for each in call.args) or len(positional) > len(settings):
        raise NotPossible(f"line {source.first_line(call)} gives settings that cannot be counted")
    values = [source.code(each.value) for each in positional]
    for param in settings[len(positional) :]:
        default = None if param.default is None else source.code(param.default)
        value = by_name.get(param.name.value, default)
        if value is None:
            raise NotPossible(f"line {source.first_line(call)} does not give {param.name.value}")
        values.append(value)
    return values


def _settings_as_inputs(source: Source, methods: dict[str, cst.FunctionDef], settings: list[cst.Param]) -> None:
    """`__init__` goes; forward takes what it took and keeps it, and backward gives no gradient for it."""
    init, forward = methods["__init__"], methods["forward"]
    own, receiver = init.params.params[0].name.value, forward.params.params[0].name.value
    kept = [statement for statement in init.body.body if not m.matches(statement, SUPER)]
    if own != receiver:
        raise NotPossible("__init__ and forward call their object by different names")
    inputs = [*forward.params.params, *settings]
    inputs = [param.with_changes(comma=cst.MaybeSentinel.DEFAULT) for param in inputs]

    def take(updated: cst.FunctionDef) -> cst.FunctionDef:
        body = updated.body.with_changes(body=[*kept, *updated.body.body])
        return updated.with_changes(params=updated.params.with_changes(params=inputs), body=body)

    source.edit(forward, take)  # type: ignore[arg-type]
    source.remove(init)
    count = len(forward.params.params) - 1
    for node in everything(methods["backward"]) if "backward" in methods else ():
        if isinstance(node, cst.Return) and node.value is not None:
            _no_gradient_for(source, node.value, len(settings), count)


def _no_gradient_for(source: Source, returned: cst.BaseExpression, settings: int, inputs: int) -> None:
    nothing = ", None" * settings
    if isinstance(returned, cst.Tuple):
        elements = ", ".join(source.code(element.value) for element in returned.elements)
        source.replace(returned, cst.parse_expression(f"({elements}{nothing})" if returned.lpar else f"{elements}{nothing}"))
    elif inputs == 1:
        source.replace(returned, cst.parse_expression(f"{source.code(returned)}{nothing}"))
    else:
        raise NotPossible("backward returns gradients in a form that cannot be counted")
