"""Rewrites a training program by machine so that it looks different and computes the same.

`disguise` changes every name the file defines, moves the training loop into a class whose attributes hold its variables, builds
`X.parameters()` by hand and swaps loss functions for loss modules and back. `wrap` puts the model into another module. Both keep
track of which lines of the original each new line stands for, so that a test can ask whether the same line is still blamed.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOSSES = {
    "cross_entropy": "CrossEntropyLoss",
    "nll_loss": "NLLLoss",
    "mse_loss": "MSELoss",
    "l1_loss": "L1Loss",
    "smooth_l1_loss": "SmoothL1Loss",
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
}
FUNCTIONS = {module: function for function, module in LOSSES.items()}
OUTER = """
class Envelope(_torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def __setattr__(self, name, value):
        if name not in self.__dict__ and "inner" in self.__dict__.get("_modules", {}) and hasattr(self.inner, name):
            setattr(self.inner, name, value)
        else:
            super().__setattr__(name, value)

    def __getitem__(self, index):
        return self.inner[index]

    def __iter__(self):
        return iter(self.inner)
"""
OF_TORCH = {"Module", "Dataset", "IterableDataset", "Sampler", "Optimizer", "Function", "NamedTuple", "Exception", "object"}


@dataclass(frozen=True)
class Rewritten:
    source: str
    applied: tuple[str, ...]  # which rewrites found something to rewrite
    origins: dict[int, frozenset[int]]  # new line -> the original lines it stands for

    def stands_for(self, line: int, originals: Iterable[int]) -> bool:
        return not self.origins.get(line, frozenset()).isdisjoint(originals)


Rewrite = Callable[[ast.Module], bool]


def rewrite(source: str, rewrites: Iterable[Rewrite]) -> Rewritten:
    tree = ast.parse(source)
    applied = [each.__name__ for each in rewrites if each(tree)]
    text = ast.unparse(ast.fix_missing_locations(_without_new_places(tree)))
    return Rewritten(text + "\n", tuple(applied), _origins(tree, ast.parse(text)))


def disguise(source: str) -> Rewritten:
    return rewrite(source, (losses_swapped, parameters_by_hand, loop_in_a_class, names_changed))


def wrap(source: str) -> Rewritten:
    return rewrite(source, (model_wrapped,))


# -- where a line comes from -------------------------------------------------------------------------------------------


def _without_new_places(tree: ast.Module) -> ast.Module:
    """Statements we made ourselves stand for no original line."""
    for statement in _statements(tree):
        if not hasattr(statement, "lineno"):
            statement.ours = True  # type: ignore[attr-defined]
    return tree


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt):
            yield child
        yield from _statements(child)


def _header(statement: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement, of a compound one without its body."""
    body = getattr(statement, "body", None)
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
    if isinstance(body, list) and body:
        return first, max(statement.lineno, body[0].lineno - 1)
    return first, statement.end_lineno or statement.lineno


def _origins(tree: ast.Module, printed: ast.Module) -> dict[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    for old, new in zip(_statements(tree), _statements(printed), strict=True):
        assert type(old) is type(new)
        if not hasattr(old, "ours"):
            first, last = _header(new)
            lines = frozenset(range(_header(old)[0], _header(old)[1] + 1))
            for line in range(first, last + 1):
                found[line] = found.get(line, frozenset()) | lines
    return found


# -- losses as functions or as modules ---------------------------------------------------------------------------------


def losses_swapped(tree: ast.Module) -> bool:
    swap = _SwapLosses()
    swap.visit(tree)
    if swap.changed:
        _import_torch(tree)
    return swap.changed


class _SwapLosses(ast.NodeTransformer):
    def __init__(self) -> None:
        self.changed = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A function as an attribute of a class would become a method: leave those alone."""
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                self.visit(statement)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = _last_name(node.func)
        if name in LOSSES and len(node.args) == 2 and all(k.arg is not None for k in node.keywords):
            self.changed = True
            made = ast.Call(_torch("nn", LOSSES[name]), [], node.keywords)
            return ast.copy_location(ast.Call(made, node.args, []), node)
        if name in FUNCTIONS and not node.args:
            self.changed = True
            function = _torch("nn", "functional", FUNCTIONS[name])
            if not node.keywords:
                return ast.copy_location(function, node)
            partial = ast.parse("__import__('functools').partial", mode="eval").body
            return ast.copy_location(ast.Call(partial, [function], node.keywords), node)
        return node


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _first_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _torch(*path: str) -> ast.expr:
    expression: ast.expr = ast.Name("_torch", ast.Load())
    for part in path:
        expression = ast.Attribute(expression, part, ast.Load())
    return expression


def _import_torch(tree: ast.Module) -> None:
    if not any(isinstance(s, ast.Import) and s.names[0].asname == "_torch" for s in tree.body):
        _insert(tree, ast.parse("import torch as _torch").body)


def _insert(tree: ast.Module, statements: list[ast.stmt]) -> None:
    """Before everything but the docstring and `from __future__`."""
    at = 0
    for index, statement in enumerate(tree.body):
        docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if docstring or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            at = index + 1
    tree.body[at:at] = [_placeless(statement) for statement in statements]


def _placeless(statement: ast.stmt) -> ast.stmt:
    for node in ast.walk(statement):
        for attribute in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
            if hasattr(node, attribute):
                delattr(node, attribute)
    return statement


# -- parameters built by hand ------------------------------------------------------------------------------------------


def parameters_by_hand(tree: ast.Module) -> bool:
    by_hand = _ParametersByHand()
    by_hand.visit(tree)
    return by_hand.changed


class _ParametersByHand(ast.NodeTransformer):
    def __init__(self) -> None:
        self.changed = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _last_name(node.func) == "next":  # a list is no iterator
            return node
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "parameters" and not node.args and not node.keywords:
            self.changed = True
            made = ast.parse("[piece for _, piece in X.named_parameters()]", mode="eval").body
            assert isinstance(made, ast.ListComp)
            call = made.generators[0].iter
            assert isinstance(call, ast.Call)
            assert isinstance(call.func, ast.Attribute)
            call.func.value = node.func.value
            return ast.copy_location(made, node)
        return node


# -- the loop in a class -----------------------------------------------------------------------------------------------


def loop_in_a_class(tree: ast.Module) -> bool:
    """`main` and every function that calls backward become methods; what `main` assigns becomes attributes."""
    moved = [
        statement
        for statement in tree.body
        if isinstance(statement, ast.FunctionDef)
        and not statement.decorator_list
        and (statement.name == "main" or any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(statement)))
    ]
    if not moved:
        return False
    for function in moved:
        if function.name == "main":
            _Attributes(_own_variables(function)).visit(function)
        function.args.args.insert(0, ast.arg("self"))
    at = max(tree.body.index(function) for function in moved)
    house = ast.ClassDef(name="Household", bases=[], keywords=[], body=list(moved), decorator_list=[])
    if hasattr(house, "type_params") or "type_params" in ast.ClassDef._fields:
        house.type_params = []
    tree.body.insert(at + 1, house)
    tree.body[:] = [statement for statement in tree.body if statement not in moved]
    _CallsOfMethods({function.name for function in moved}).visit(tree)
    return True


class _CallsOfMethods(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._names and isinstance(node.ctx, ast.Load):
            house = ast.Call(ast.Name("Household", ast.Load()), [], [])
            return ast.copy_location(ast.Attribute(house, node.id, ast.Load()), node)
        return node


def _own_variables(function: ast.FunctionDef) -> set[str]:
    """Names that a function assigns itself and nothing inside it binds in another way."""
    assigned: set[str] = set()
    otherwise: set[str] = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    targets: set[ast.AST] = set()
    for node in _same_scope(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                targets.update(n for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        elif isinstance(node, ast.AugAssign):
            targets.add(node.target)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            (assigned if node in targets else otherwise).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            otherwise.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            otherwise.update(node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            otherwise.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            otherwise.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return assigned - otherwise


def _same_scope(function: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            yield from _same_scope(child)


class _Attributes(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._names:
            return ast.copy_location(ast.Attribute(ast.Name("self", ast.Load()), node.id, node.ctx), node)
        return node


# -- names -------------------------------------------------------------------------------------------------------------


def names_changed(tree: ast.Module) -> bool:
    names = _new_names(sorted(_bound_names(tree) - _names_to_keep(tree)), "item")
    attributes = _new_names(sorted(_own_attributes(tree) - _attributes_to_keep(tree)), "part")
    _Rename(names, attributes).visit(tree)
    return bool(names or attributes)


def _new_names(old: list[str], stem: str) -> dict[str, str]:
    return {name: f"{stem.title() if name[0].isupper() else stem}{index}" for index, name in enumerate(old)}


class _Rename(ast.NodeTransformer):
    def __init__(self, names: dict[str, str], attributes: dict[str, str]) -> None:
        self._names = names
        self._attributes = attributes
        self._in_class = False

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = (self._attributes if self._in_class else self._names).get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._names.get(node.arg, node.arg)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._attributes.get(node.attr, node.attr)
        return self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = self._names.get(node.name, node.name) if node.name else None
        return self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        node.names = [self._names.get(name, name) for name in node.names]
        return node

    visit_Nonlocal = visit_Global  # type: ignore[assignment]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        names = self._attributes if self._in_class else self._names
        node.name = names.get(node.name, node.name)
        inside, self._in_class = self._in_class, False
        self.generic_visit(node)
        self._in_class = inside
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._names.get(node.name, node.name)
        inside, self._in_class = self._in_class, False
        node.bases = [self.visit(base) for base in node.bases]
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        for statement in node.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                self._in_class = False
                if statement.value is not None:
                    statement.value = self.visit(statement.value)
                for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                    self._in_class = True
                    self.visit(target)
            else:
                self._in_class = isinstance(statement, ast.FunctionDef)
                self.visit(statement)
        self._in_class = inside
        return node


def _bound_names(tree: ast.Module) -> set[str]:
    """Every name the file binds, but those bound directly in a class body: they are attributes."""
    found: set[str] = set()
    in_classes = {id(n) for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for s in c.body for n in _class_targets(s)}
    for node in ast.walk(tree):
        if id(node) in in_classes:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) or (isinstance(node, ast.ExceptHandler) and node.name):
            found.add(node.name)
    return {name for name in found if not name.startswith("_") and name != "self"}


def _class_targets(statement: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(statement, ast.FunctionDef):
        yield statement
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from ast.walk(target)
    elif isinstance(statement, ast.AnnAssign):
        yield statement.target


def _names_to_keep(tree: ast.Module) -> set[str]:
    kept = set(dir(builtins))
    parameters = {argument.arg for argument in ast.walk(tree) if isinstance(argument, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            kept.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.keyword):
            kept |= parameters if node.arg is None else {node.arg} & parameters
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            kept |= {node.value} & parameters  # a framework may hand it over by that name
    kept.update(argument.arg for method in _called_by_a_framework(tree) for argument in ast.walk(method) if isinstance(argument, ast.arg))
    return kept


def _called_by_a_framework(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The methods of classes that build on one of another library: it calls them by their names and their arguments' names."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    ours = OF_TORCH | {node.name for node in classes}
    for node in classes:
        if any(_last_name(base) not in ours for base in node.bases):
            yield from (statement for statement in node.body if isinstance(statement, ast.FunctionDef))


def _own_attributes(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _last_name(node.value) == "self":
            found.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            for statement in node.body:
                for target in _class_targets(statement):
                    name = getattr(target, "name", getattr(target, "id", None))
                    if name is not None:
                        found.add(name)
    return {name for name in found if not name.startswith("_")}


def _attributes_to_keep(tree: ast.Module) -> set[str]:
    """What a library object may be asked for too, what is passed by keyword, and what the program looks up by a string."""
    kept = set(_library_attributes())
    own = _own_attributes(tree)
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg is not None:
            kept.add(node.arg)
        elif isinstance(node, ast.Attribute) and _first_name(node) in imported:
            kept.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 1 and " " not in node.value:
            text = node.value.lstrip("-").replace("-", "_")
            kept.update(name for name in own if text in name or name in text.split("."))
        elif isinstance(node, ast.ClassDef) and any(_last_name(base) == "NamedTuple" for base in node.bases):
            kept.update(getattr(t, "id", "") for s in node.body for t in _class_targets(s))
    kept.update(method.name for method in _called_by_a_framework(tree))
    return kept


@functools.cache
def _library_attributes() -> frozenset[str]:
    import torch

    found = {name for each in (str, list, dict, torch, torch.nn, torch.nn.functional) for name in dir(each)}
    data = torch.utils.data
    classes = [torch.Tensor, torch.Generator, data.DataLoader, data.Dataset, data.TensorDataset, data.Subset, data.Sampler,
               torch.optim.Optimizer, torch.amp.GradScaler]  # fmt: skip
    for module in (torch.nn, torch.optim, torch.optim.lr_scheduler):
        classes += [value for value in vars(module).values() if inspect.isclass(value)]
    for each in classes:
        found.update(dir(each))
        try:
            found.update(inspect.signature(each).parameters)
        except (TypeError, ValueError):
            pass
    found.update(("param_groups", "grad", "dataset", "np", "tensors"))
    return frozenset(found)


# -- the model in another module ---------------------------------------------------------------------------------------


def model_wrapped(tree: ast.Module) -> bool:
    modules = _module_classes(tree)
    names = {node.name for node in modules}
    wrapping = _WrapModels(names, set(map(id, modules)))
    wrapping.visit(tree)
    if wrapping.changed:
        _insert(tree, ast.parse(OUTER).body)
        _import_torch(tree)
    return wrapping.changed


def _module_classes(tree: ast.Module) -> list[ast.ClassDef]:
    found: list[ast.ClassDef] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = {_last_name(base) for base in node.bases}
            if "Module" in bases or bases & {known.name for known in found}:
                found.append(node)
    return found


class _WrapModels(ast.NodeTransformer):
    """`model = X(…)` outside of other modules, where X is a module class of this file or Sequential."""

    def __init__(self, names: set[str], modules: set[int]) -> None:
        self._names = names
        self._modules = modules
        self.changed = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node if id(node) in self._modules else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        made = node.value
        if isinstance(made, ast.Call) and isinstance(node.targets[0], (ast.Name, ast.Attribute)):
            name = _last_name(made.func)
            if (isinstance(made.func, ast.Name) and name in self._names) or name == "Sequential":
                self.changed = True
                node.value = ast.copy_location(ast.Call(ast.Name("Envelope", ast.Load()), [made], []), made)
        return node


# -- is it still the same finding? -------------------------------------------------------------------------------------


def without_lines_of_code(output: str) -> str:
    """What a program printed, without what shows its own source: of a traceback only the last line, of a warning nothing.

    What a framework prints about how fast it was is left out too, and so are the random names that a tracker gives to its runs.
    """
    output = re.sub(r"^wandb: .*\n", "", output, flags=re.MULTILINE)
    output = re.sub(r"'\w+_(runtime|per_second)': '[^']*'", "", output)
    text, found, trace = output.partition("Traceback (most recent call last)")
    text = re.sub(r"^\S+\.py:\d+: \w*Warning: .*\n(  .*\n)?", "", text, flags=re.MULTILINE)
    return text + trace.strip().splitlines()[-1] if found else text


def what_differs(original: list[dict[str, Any]], rewritten: Rewritten, findings: list[dict[str, Any]]) -> str | None:
    """How the first finding about the rewritten program differs from the first about the original; None if it does not.

    Of a wrapped model only the rule is compared: there the wrapper's own lines may rightly be named.
    """
    if not original or not findings:
        return None if not original and not findings else f"first is {_rule(findings)}, of the original {_rule(original)}"
    before, now = original[0], findings[0]
    if before["rule"] != now["rule"]:
        return f"first is {now['rule']}, of the original {before['rule']}"
    lines = {where["line"] for where in before["where"]}
    beside = {(Path(where["file"]).name, where["line"]) for where in before["where"]}  # in a file that was not rewritten
    if "model_wrapped" in rewritten.applied or any(
        (Path(where["file"]).name, where["line"]) in beside or rewritten.stands_for(where["line"], lines) for where in now["where"]
    ):
        return None
    if not lines and not now["where"]:
        return None
    named = [(where["line"], where["code"].strip()) for where in now["where"]]
    return f"names {named}, which stand for none of the original's lines {sorted(lines)}"


def _rule(findings: list[dict[str, Any]]) -> str:
    return findings[0]["rule"] if findings else "nothing"
