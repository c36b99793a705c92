"""Cures `stall/unregistered-modules`: lists, dicts and tensors of a model become what nn.Module registers."""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import argument, drop_argument, grouped, rewrite_as, torch_nn
from trainsleuth.remedies.source import NotPossible, Source, called_name, is_method_call

INSIDE = re.compile(r"(\w+)\[\d+\]((?:\.\w+|\[\d+\])+) \(\w+\)")  # `0.scales[0].conv (Conv1d)`, `stages[1][0] (Linear)`

HELD = re.compile(r"(?:^|[\s.,])(\w+)\.(\w+)\[(['\"]?)[^\]]*\] \(\w+\)")  # `stack.layers[0] (Linear)`


def register(desk: Desk, finding: Diagnosed) -> str:
    """Each attribute that the evidence names, where a method of a module assigns it."""
    names = _attributes(finding)
    said = []
    for source in desk.sources(finding):
        for node in source.all(cst.Assign):
            target = node.targets[0].target
            if len(node.targets) == 1 and _of_self(target) and target.attr.value in names:  # type: ignore[attr-defined]
                name = target.attr.value  # type: ignore[attr-defined]
                said += [_wrapped(source, node, name) or _given(source, node, name, finding)]
    said = [text for text in said if text]
    if not said:
        raise NotPossible("no assignment of these attributes has a form that can be wrapped")
    return "; ".join(said)


def register_beside(desk: Desk, finding: Diagnosed) -> str:
    """Layers inside of pairs or records keep their place, and a ModuleList beside it makes them known."""
    inside = {name: rest for text in finding.evidence for name, rest in INSIDE.findall(text)}
    for source in desk.sources(finding):
        for node in source.all(cst.Assign):
            target = node.targets[0].target
            name = target.attr.value if len(node.targets) == 1 and _of_self(target) else ""  # type: ignore[attr-defined]
            if name in inside:
                listed = f"{torch_nn(source)}.ModuleList(item{inside[name]} for item in self.{name})"
                source.after(source.statement_of(node), f"self.{name}_modules = {listed}")
                return f"the layers in {name} are registered in a list beside it (line {source.first_line(node)})"
    raise NotPossible("no attribute holds layers inside of pairs or records")


def register_what_an_object_holds(desk: Desk, finding: Diagnosed) -> str:
    """A plain object of a class of the program's own keeps the layers: a list beside it makes them known."""
    held = {name: (rest, quote) for text in finding.evidence for name, rest, quote in HELD.findall(text)}
    sources = list(desk.sources_and_imports(finding))
    plain = {node.name.value for source in sources for node in source.all(cst.ClassDef) if not node.bases}
    for source in sources:
        for node in source.all(cst.Assign):
            target = node.targets[0].target
            name = target.attr.value if len(node.targets) == 1 and _of_self(target) else ""  # type: ignore[attr-defined]
            if name in held and isinstance(node.value, cst.Call) and called_name(node.value) in plain:
                attribute, quote = held[name]
                kind = "ModuleDict" if quote else "ModuleList"
                source.after(source.statement_of(node), f"self.{name}_modules = {torch_nn(source)}.{kind}(self.{name}.{attribute})")
                return f"the layers that {name} keeps are registered beside it (line {source.first_line(node)})"
    raise NotPossible("no plain object of a class in these files keeps the layers")


def _given(source: Source, node: cst.Assign, name: str, finding: Diagnosed) -> str:
    """`self.layers = layers`: the evidence tells whether a list or a dictionary was given."""
    listed = next((found[1] for text in finding.evidence if (found := re.search(rf"\b{name}\[(\d|['\"])", text))), "")
    if not listed or not isinstance(node.value, (cst.Name, cst.Attribute)):
        return ""
    kind = "ModuleList" if listed.isdigit() else "ModuleDict"
    rewrite_as(source, node.value, f"{torch_nn(source)}.{kind}({{x}})", x=node.value)
    return f"{name} is an nn.{kind} (line {source.first_line(node)})"


def _attributes(finding: Diagnosed) -> set[str]:
    """The attribute's own name in `decoder.hidden[0] (Linear)` or `branches['a'] (Sequential)`."""
    found = set()
    for text in finding.evidence:
        for path in re.findall(r"([\w.\[\]'\"-]+) \(\w+\)", text):
            found.add(re.split(r"[\[]", path)[0].rpartition(".")[2])
            found.update(part for part in re.split(r"[.\[\]'\"]+", path) if part and not part.isdigit())
    return found


def _of_self(target: cst.CSTNode) -> bool:
    return m.matches(target, m.Attribute(value=m.Name("self")))


def _wrapped(source: Source, node: cst.Assign, name: str) -> str:
    value, nn = node.value, torch_nn(source)
    line = source.first_line(node)
    if isinstance(value, (cst.List, cst.ListComp, cst.Tuple)):
        rewrite_as(source, value, f"{nn}.ModuleList({{x}})", x=value)
        return f"{name} is an nn.ModuleList (line {line})"
    if isinstance(value, (cst.Dict, cst.DictComp)):
        rewrite_as(source, value, f"{nn}.ModuleDict({{x}})", x=value)
        return f"{name} is an nn.ModuleDict (line {line})"
    made = [call for call in source.all(cst.Call, value) if call is not value and called_name(call) == "Parameter" and call.args]
    if len(made) == 1:
        rewrite_as(source, made[0], "{x}", x=grouped(made[0].args[0].value))
        source.edit(value, lambda updated: cst.Call(func=made[0].func, args=[cst.Arg(updated)]))  # type: ignore[arg-type]
        return f"{name} is itself an nn.Parameter, not computed from one (line {line})"
    if isinstance(value, cst.Call) and called_name(value) in ("list", "tuple", "dict"):
        kind = "ModuleDict" if called_name(value) == "dict" else "ModuleList"
        rewrite_as(source, value, f"{nn}.{kind}({{x}})", x=value)
        return f"{name} is an nn.{kind} (line {line})"
    if isinstance(value, cst.Call) and is_method_call(value, "requires_grad_") and isinstance(value.func, cst.Attribute):
        inner = value.func.value
        plain = inner.with_changes(lpar=[], rpar=[]) if inner.lpar else inner
        rewrite_as(source, value, f"{nn}.Parameter({{x}})", x=plain)
        return f"{name} is an nn.Parameter (line {line})"
    if isinstance(value, cst.Call):
        given = argument(value, None, "requires_grad")
        if given is not None and m.matches(given.value, m.Name("True")):
            drop_argument(source, value, given)
            source.edit(value, lambda updated: cst.Call(func=cst.parse_expression(f"{nn}.Parameter"), args=[cst.Arg(updated)]))  # type: ignore[arg-type]
            return f"{name} is an nn.Parameter (line {line})"
    return ""
