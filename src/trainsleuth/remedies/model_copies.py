"""Cures what goes wrong with copies of a model: one is trained while the optimizer holds the original (`stall/params-not-in-optimizer`), or gets
the weights of the original and not its buffers (`mode/statistics-as-built`), or is none at all (`checkpoint/restores-nothing`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import add_import, called, calls_at, function_or_module, rewrite_as
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything

OPTIMIZER = re.compile(r"(?i)(^|\.)(\w*(sgd|adam\w*|rmsprop|adagrad|adadelta|adamax|lion|adafactor|lbfgs|muon)|\w*optim\w*)$")
KEPT_BESIDE = re.compile(r"(?i)ema|averag|teacher|target|momentum|shadow|best|old|prev|ref(erence)?$|frozen|init|backup|snapshot|saved")
WITHOUT_GRADIENTS = re.compile(r"no_grad|inference_mode|set_grad_enabled\(False\)")


def train_the_original(desk: Desk, finding: Diagnosed) -> str:
    """The only copy that is trained, in the files of the finding and in what they import, is not made."""
    found = [(source, call) for source in list(desk.sources_and_imports(finding)) for call in _trained_copies(source)]
    if len(found) != 1:
        raise NotPossible(f"{'several copies' if found else 'no copy'} of a model would have to be the one that is trained")
    source, call = found[0]
    statement = source.parent(call)
    line = source.first_line(call)
    original = call.args[0].value
    if isinstance(statement, cst.Assign) and [source.code(target.target) for target in statement.targets] == [source.code(original)]:
        source.remove(statement)
    else:
        source.replace(call, original)
    return f"line {line} of {source.path.name} trains the model itself, which the optimizer holds, not a copy of it"


def buffers_too(desk: Desk, finding: Diagnosed) -> str:
    """Behind the loop that goes through the parameters of both models, their buffers are copied."""
    for source in list(desk.sources_and_imports(finding)):
        for loop in source.all(cst.For):
            pair = loop.iter
            if not (isinstance(pair, cst.Call) and called_name(pair) == "zip" and len(pair.args) == 2 and isinstance(loop.target, cst.Tuple)):
                continue
            both = [given.value for given in pair.args]
            owners = [
                source.code(call.func.value) for call in both
                if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and called_name(call) in ("parameters", "named_parameters")
            ]  # fmt: skip
            names = [source.code(element.value) for element in loop.target.elements]
            changed = [name for name in names if re.search(rf"\b{re.escape(name)}(\.data)?(\.\w+_\(| [*+]?= )", source.code(loop.body))]
            if len(owners) != 2 or len(changed) != 1 or owners[0] == owners[1]:
                continue
            copy = owners if changed[0] == names[0] else owners[::-1]
            source.after(loop, f"for own, other in zip({copy[0]}.buffers(), {copy[1]}.buffers()):\n    own.copy_(other)\n")
            return f"behind the loop in line {source.first_line(loop)} the buffers of {copy[1]} are copied as well"
    raise NotPossible("no loop goes through the parameters of both models")


def copy_of_the_state(source: Source, line: int) -> str:
    """`model.state_dict()` that is kept: a copy of it is."""
    for call in calls_at(source, line, "state_dict"):
        if not call.args:
            add_import(source, "import copy", "copy")
            rewrite_as(source, call, "copy.deepcopy({x})", x=call)
            return f"line {source.first_line(call)} keeps a copy of the weights, which later changes leave alone"
    raise NotPossible(f"{source.path.name}:{line} does not ask for a state dict itself")


def _trained_copies(source: Source) -> Iterator[cst.Call]:
    for call in called(source, "deepcopy"):
        if len(call.args) != 1 or not m.matches(call.args[0].value, m.Name() | m.Attribute()):
            continue
        name = _given_to(source, call)
        if (name and _is_trained(source, call, name)) or _goes_with_the_optimizer(source, call):
            yield call


def _given_to(source: Source, call: cst.Call) -> str:
    """The name or attribute that gets the copy, moved to a device or not."""
    node: cst.CSTNode = call
    above = source.parent(node)
    while isinstance(above, cst.Attribute) and above.attr.value in ("to", "cuda", "cpu", "train", "float"):
        node = source.parent(above) or above
        above = source.parent(node)
    if isinstance(above, cst.Assign) and above.value is node and len(above.targets) == 1:
        target = above.targets[0].target
        return source.code(target) if isinstance(target, (cst.Name, cst.Attribute)) else ""
    return ""


def _is_trained(source: Source, copy: cst.Call, name: str) -> bool:
    """Whether what bears the name is called where a backward follows, and is no average, teacher or target beside the original."""
    home = _home(source, copy, name)
    original = source.code(copy.args[0].value)
    if home is None or KEPT_BESIDE.search(name.rpartition(".")[2]):
        return False
    if original != name and (_is_called(source, home, original) or _is_kept(source, home, original)):
        return False
    if _is_updated_otherwise(source, home, name):
        return False
    return _is_called(source, home, name) and bool(called(source, "backward", "manual_backward", below=home))


def _home(source: Source, copy: cst.Call, name: str) -> cst.CSTNode | None:
    """The class for an attribute of self, otherwise the function around."""
    if name.startswith("self."):
        return source.enclosing(copy, cst.ClassDef)
    return function_or_module(source, copy)


def _is_called(source: Source, home: cst.CSTNode, name: str) -> bool:
    return any(source.code(call.func) == name and not _is_cut_off(source, call) for call in source.all(cst.Call, home))


def _is_cut_off(source: Source, call: cst.Call) -> bool:
    """Whether no gradient comes back to a call: it is detached, or gradients are off around it."""
    above = source.parent(call)
    if isinstance(above, cst.Attribute) and above.attr.value in ("detach", "data", "item"):
        return True
    for block in source.above(call):
        if isinstance(block, cst.With) and any(WITHOUT_GRADIENTS.search(source.code(item)) for item in block.items):
            return True
        if isinstance(block, cst.FunctionDef) and any(WITHOUT_GRADIENTS.search(source.code(mark)) for mark in block.decorators):
            return True
    return False


def _is_kept(source: Source, home: cst.CSTNode, original: str) -> bool:
    """Whether the original is kept under a name of its own, or handed on, beside its copy."""
    return any(isinstance(node, (cst.Assign, cst.Return)) and node.value is not None and source.code(node.value) == original
               for node in everything(home))  # fmt: skip


def _is_updated_otherwise(source: Source, home: cst.CSTNode, name: str) -> bool:
    """Whether the copy has an optimizer of its own, is frozen, or is changed by hand."""
    asked = re.compile(rf"(?<![\w.]){re.escape(name)}\.(named_)?parameters\(")
    for node in everything(home):
        if isinstance(node, cst.Call):
            taken = asked.search(source.code(node)) or any(source.code(given.value) == name for given in node.args)
            if (taken and OPTIMIZER.search(source.code(node.func))) or source.code(node.func) == f"{name}.requires_grad_":
                return True
        if isinstance(node, cst.For) and asked.search(source.code(node.iter)):
            return True
    return False


def _goes_with_the_optimizer(source: Source, copy: cst.Call) -> bool:
    """`Trainer(deepcopy(model), optimizer)`, where the optimizer was built from `model.parameters()`."""
    above = source.parent(copy)
    taker = source.parent(above) if isinstance(above, cst.Arg) else None
    if not isinstance(taker, cst.Call):
        return False
    original = re.escape(source.code(copy.args[0].value))
    beside = {source.code(given.value) for given in taker.args if given is not above}
    return any(
        isinstance(node.value, cst.Call) and source.code(node.targets[0].target) in beside and OPTIMIZER.search(source.code(node.value.func))
        and re.search(rf"(?<![\w.]){original}\.(named_)?parameters\(", source.code(node.value))
        for node in source.all(cst.Assign)
    )  # fmt: skip
