"""Cures a loss of accuracy in 16 bit: the modules that do not bear it are called in 32 bit, everything else stays as it is."""

from __future__ import annotations

import re

import libcst as cst

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything

CALLED = re.compile(r"calls ([\w.#]+).*: keep it in 32 bit \(on (\w+), (\d+) input")
NAME = "in_32_bit"
PLAIN = '''
def in_32_bit(module, *inputs):
    """Call a module with autocast off and its inputs in 32 bit: it loses accuracy in 16 bit."""
    inputs = [x.float() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs]
    with torch.autocast("{device}", enabled=False):
        return module(*inputs)
'''
DEEP = '''
def in_32_bit(module, *inputs, **named):
    """Call a module with autocast off and its inputs in 32 bit: it loses accuracy in 16 bit."""

    def full(value):
        if isinstance(value, dict):
            return {{key: full(item) for key, item in value.items()}}
        if isinstance(value, (list, tuple)):
            return type(value)(full(item) for item in value)
        return value.float() if torch.is_tensor(value) and value.is_floating_point() else value

    with torch.autocast("{device}", enabled=False):
        return module(*full(inputs), **full(named))
'''


def rewrite(desk: Desk, finding: Diagnosed) -> str:
    """Each call of such a module goes through a function that casts up; the function stands once in each file."""
    told: list[str] = []
    deep: dict[str, bool] = {}
    devices: dict[str, str] = {}
    for place in finding.where:
        found = CALLED.search(place.note)
        if found is None:
            continue
        source = desk.source(place.file)
        call = _call(source, place.line, found[1], int(found[3]))
        source.replace(call, _wrapped(call))
        deep[place.file] = deep.get(place.file, False) or "structures" in place.note or any(arg.keyword or arg.star for arg in call.args)
        devices[place.file] = found[2]
        told.append(f"{found[1]} (line {place.line})")
    if not told:
        raise NotPossible("no line of yours calls the modules that do not bear 16 bit; `trainsleuth prove CASE --precision` looks for them")
    for file, device in devices.items():
        _define(desk.source(file), (DEEP if deep[file] else PLAIN).format(device=device))
    return f"in 32 bit whatever autocast says: {', '.join(told)}"


def _call(source: Source, line: int, address: str, inputs: int) -> cst.Call:
    """The call of the module in this line: by its name, or because no other call with so many inputs could be it."""
    statement = source.statement_at(line)
    calls = [node for node in everything(statement) if isinstance(node, cst.Call) and source.covers(node, line)]
    own = address.rpartition(".")[2]
    named = [call for call in calls if called_name(call) == own]
    able = named or [call for call in calls if isinstance(call.func, (cst.Attribute, cst.Subscript)) or _is_local(call)]
    able = [call for call in able if len(call.args) == inputs] or able
    if len(able) != 1:
        raise NotPossible(f"{source.path.name}:{line} calls several things, and which of them is {address} is not certain")
    return able[0]


def _is_local(call: cst.Call) -> bool:
    """A name that is no function of Python's own."""
    import builtins

    return isinstance(call.func, cst.Name) and not hasattr(builtins, call.func.value)


def _wrapped(call: cst.Call) -> cst.Call:
    module = cst.Arg(call.func, comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))) if call.args else cst.Arg(call.func)
    return call.with_changes(func=cst.Name(NAME), args=[module, *call.args])


def _define(source: Source, text: str) -> None:
    """The function in front of the first definition of the file, which must know torch."""
    if source.function_named(NAME):
        return
    definitions = [node for node in source.module.body if isinstance(node, (cst.ClassDef, cst.FunctionDef))]
    first = next(iter(definitions), None) or next((node for node in source.module.body if not _opens(node)), None)
    if first is None:
        raise NotPossible(f"{source.path.name} has no place for a function")
    imported = any(re.search(r"^import torch\b(?!\.| as)", source.code(node), re.M) for node in source.all(cst.SimpleStatementLine))
    blank = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    added: list[cst.BaseStatement] = [] if imported else [cst.parse_statement("import torch\n")]
    helper = cst.parse_statement(text.strip() + "\n", config=source.module.config_for_parsing)
    added.append(helper.with_changes(leading_lines=blank))

    def put(updated: cst.CSTNode) -> cst.FlattenSentinel[cst.CSTNode]:
        lines = [*getattr(updated, "leading_lines", ())]
        spaced = [*blank, *(line for line in lines if line.comment is not None)]
        return cst.FlattenSentinel([*added, updated.with_changes(leading_lines=spaced)])

    source.edit(first, put)


def _opens(node: cst.CSTNode) -> bool:
    """What stands at the top of a file: its docstring and its imports."""
    if not isinstance(node, cst.SimpleStatementLine):
        return False
    small = node.body[0]
    return isinstance(small, (cst.Import, cst.ImportFrom)) or (isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString))
