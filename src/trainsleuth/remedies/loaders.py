"""Cures at a DataLoader: it shuffles, divides its data among the ranks, starts its workers afresh."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import (
    add_import,
    argument,
    called,
    calls_at,
    drop_argument,
    imported,
    is_true,
    iterated,
    loop_around,
    set_argument,
)
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, names_in

TENSORS = ("tensor", "as_tensor", "LongTensor", "FloatTensor", "stack", "from_numpy", "pad_sequence")
ORDERS = ("randperm", "permutation", "argsort", "shuffle")


def _loader(source: Source, line: int) -> cst.Call:
    for call in calls_at(source, line):
        if called_name(call).endswith("DataLoader"):
            return call
    raise NotPossible(f"{source.path.name}:{line} builds no DataLoader itself")


def shuffled(source: Source, line: int) -> str:
    """`shuffle=True`."""
    call = _loader(source, line)
    if argument(call, None, "sampler", "batch_sampler") is not None:
        raise NotPossible("the loader has a sampler of its own")
    set_argument(source, call, "shuffle", "True")
    return f"the loader in line {source.first_line(call)} shuffles"


def without_its_sampler(source: Source, line: int) -> str:
    """A sampler that gives the data in order is left out, and the loader shuffles; the size of its batches is taken from the sampler."""
    call = _loader(source, line)
    one, whole = argument(call, None, "sampler"), argument(call, None, "batch_sampler")
    if one is not None:
        drop_argument(source, call, one)
    elif whole is not None and isinstance(whole.value, cst.Call):
        sizes = [given.value for given in whole.value.args if "batch" in (given.keyword.value if given.keyword else source.code(given.value)).lower()]
        if len(sizes) != 1:
            raise NotPossible("the size of the sampler's batches was not found")
        drop_argument(source, call, whole)
        set_argument(source, call, "batch_size", source.code(sizes[0]))
    else:
        raise NotPossible("the loader has no sampler that it is given on the spot")
    set_argument(source, call, "shuffle", "True")
    return f"the loader in line {source.first_line(call)} shuffles, in the place of its sampler, which gives the data in order"


def divided_among_ranks(source: Source, line: int) -> str:
    """A DistributedSampler in place of `shuffle=True`, told the epoch where the loop over epochs is in sight."""
    call = _loader(source, line)
    data = argument(call, 0, "dataset")
    if data is None or not isinstance(data.value, (cst.Name, cst.Attribute)) or argument(call, None, "sampler", "batch_sampler"):
        raise NotPossible("the loader has a sampler of its own, or its data set has no name")
    shuffle = argument(call, 2, "shuffle")
    kept = "" if shuffle is not None and m.matches(shuffle.value, m.Name("True")) else ", shuffle=False"
    if shuffle is not None and shuffle.keyword is None:
        raise NotPossible("the loader's arguments are not named")
    if shuffle is not None:
        drop_argument(source, call, shuffle)
    sampler = cst.Arg(
        cst.parse_expression(f"DistributedSampler({source.code(data.value)}{kept})"), cst.Name("sampler"),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )  # fmt: skip

    def add(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.Call)
        args = list(updated.args)
        comma = args[-1].comma
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT if len(args) < 2 else args[0].comma)
        return updated.with_changes(args=[*args, sampler.with_changes(comma=comma)])

    source.edit(call, add)
    if not imported(source, "DistributedSampler"):
        add_import(source, "from torch.utils.data.distributed import DistributedSampler", "DistributedSampler")
    _tell_the_epoch(source, call)
    return f"the loader in line {source.first_line(call)} gives each rank its own part"


def prepared_by_accelerate(source: Source) -> str:
    """The loader that the training loop goes over is given to `accelerator.prepare`, as the model was."""
    for prepare in called(source, "prepare"):
        if not isinstance(prepare.func, cst.Attribute) or not source.enclosing(prepare, cst.FunctionDef):
            continue
        given = {source.code(arg.value) for arg in prepare.args}
        for loop in source.all(cst.For, source.enclosing(prepare, cst.FunctionDef)):
            loader = iterated(loop)
            inner = [call for each in source.all(cst.For, loop.body) for call in called(source, "backward", below=each)]
            trains = called(source, "backward", below=loop) and not inner
            if trains and isinstance(loader, (cst.Name, cst.Attribute)) and source.code(loader) not in given:
                name = source.code(loader)
                source.after(source.statement_of(prepare), f"{name} = {source.code(prepare.func)}({name})")
                return f"{name} is prepared too, and gives each rank its own part (line {source.first_line(prepare)})"
    raise NotPossible("no loader of this file was left out of `prepare`")


def _tell_the_epoch(source: Source, call: cst.Call) -> None:
    assign = source.enclosing(call, cst.Assign)
    name = source.code(assign.targets[0].target) if assign is not None and assign.value is call else ""
    for loop in source.all(cst.For):
        if name and source.code(iterated(loop)) == name:
            outer = loop_around(source, loop)
            if isinstance(outer, cst.For) and isinstance(outer.target, cst.Name):
                source.before(loop, f"{name}.sampler.set_epoch({outer.target.value})")
                return


def workers_afresh(source: Source, line: int) -> str:
    """Workers are spawned, not forked: they inherit no lock and no thread pool."""
    loaders = [call for call in called(source, "DataLoader") if _has_workers(call)]
    if len(loaders) != 1:
        raise NotPossible("no single loader with workers was found in this file")
    if not _guarded(source):
        raise NotPossible('the program has no `if __name__ == "__main__":`, which spawned workers need')
    set_argument(source, loaders[0], "multiprocessing_context", '"spawn"')
    return f"the loader in line {source.first_line(loaders[0])} spawns its workers: they inherit no lock that is held"


def no_workers(source: Source, line: int) -> str:
    """Samples are made in the main process, where the lock has its owner; it costs the parallel loading."""
    loaders = [call for call in called(source, "DataLoader") if _has_workers(call)]
    if len(loaders) != 1:
        raise NotPossible("no single loader with workers was found in this file")
    set_argument(source, loaders[0], "num_workers", "0")
    for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
        given = argument(loaders[0], None, name)
        if given is not None:
            raise NotPossible(f"the loader has {name}, which needs workers")
    return f"the loader in line {source.first_line(loaders[0])} makes samples in the main process; it costs the parallel loading"


def _has_workers(call: cst.Call) -> bool:
    given = argument(call, None, "num_workers")
    return given is not None and not m.matches(given.value, m.Integer("0"))


def _guarded(source: Source) -> bool:
    return any(isinstance(node, cst.If) and "__name__" in source.code(node.test) for node in source.module.body)


def same_order_for_both(source: Source) -> str:
    """`x = x[order]` without `y = y[order]`, though both are handed out together: the other side gets the order too."""
    for node in source.all(cst.Assign):
        target, value = node.targets[0].target, node.value
        if not (isinstance(target, cst.Name) and isinstance(value, cst.Subscript) and source.code(value.value) == target.value):
            continue
        index = value.slice[0].slice if len(value.slice) == 1 else None
        order = source.code(index.value) if isinstance(index, cst.Index) and isinstance(index.value, cst.Name) else ""
        home = source.enclosing(node, cst.FunctionDef) or source.module
        if not order or not _is_an_order(source, home, order):
            continue
        others = _handed_out_with(source, home, target.value)
        loose = [other for other in sorted(others) if f"{other}[{order}]" not in source.code(home)]
        if len(loose) == 1:
            source.after(source.statement_of(node), f"{loose[0]} = {loose[0]}[{order}]")
            return f"{loose[0]} is put in the same order as {target.value} (line {source.first_line(node)})"
    raise NotPossible("no line was recognised that puts one side in another order")


def the_rest_in_the_same_order(source: Source) -> str:
    """A function sorts or shuffles one part of what it hands out (a collate function, longest first): the other parts get the order too."""
    for function in source.all(cst.FunctionDef):
        orders = [source.code(node.targets[0].target) for node in source.all(cst.Assign, function) if isinstance(node.targets[0].target, cst.Name)]
        for order in (name for name in orders if _is_an_order(source, function, name)):
            ordered = _depends_on(source, function, order)
            for parts in _handed_out(function):
                loose = [part for part in parts if not names_in(part) & ordered]
                if 0 < len(loose) < len(parts) and all(_is_made_of(source, function, part) for part in loose):
                    for part in loose:
                        source.replace(part, cst.parse_expression(f"{source.code(part)}[{order}]"))
                    said = " and ".join(source.code(part) for part in loose)
                    return f"{said} is put in the same order as the rest (line {source.first_line(loose[0])})"
    raise NotPossible("no function was recognised that puts only a part of what it hands out in another order")


def _depends_on(source: Source, home: cst.CSTNode, name: str) -> set[str]:
    """The names of what is computed with the help of this one, and its own."""
    found, before = {name}, 0
    while len(found) > before:
        before = len(found)
        for node in source.all(cst.Assign, home):
            if names_in(node.value) & found:
                found |= {inner for target in node.targets for inner in names_in(target.target)}
    return found


def _handed_out(function: cst.FunctionDef) -> Iterator[list[cst.BaseExpression]]:
    for node in everything(function):
        if isinstance(node, (cst.Yield, cst.Return)) and isinstance(node.value, (cst.Tuple, cst.Dict)):
            yield [element.value for element in node.value.elements]


def _is_made_of(source: Source, function: cst.FunctionDef, part: cst.BaseExpression) -> bool:
    """Whether a tensor is made here from what the function was given, one entry for each sample."""
    if isinstance(part, cst.Name):
        made = [node.value for node in source.all(cst.Assign, function) if source.code(node.targets[0].target) == part.value]
        return len(made) == 1 and isinstance(made[0], cst.Call) and called_name(made[0]) in TENSORS
    return isinstance(part, cst.Call) and called_name(part) in TENSORS


def _is_an_order(source: Source, home: cst.CSTNode, name: str) -> bool:
    return any(
        isinstance(node.value, cst.Call) and source.code(node.targets[0].target) == name
        and any(isinstance(call, cst.Call) and called_name(call) in ORDERS for call in everything(node.value))
        for node in source.all(cst.Assign, home)
    )  # fmt: skip


def _handed_out_with(source: Source, home: cst.CSTNode, name: str) -> set[str]:
    """Names that stand beside this one in a yield, a return, a TensorDataset or a zip."""
    found: set[str] = set()
    function = home if isinstance(home, cst.FunctionDef) else None
    parameters = {parameter.name.value for parameter in function.params.params} if function else None
    for node in everything(home):
        if isinstance(node, (cst.Yield, cst.Return)) and isinstance(node.value, cst.Tuple):
            groups = [element.value for element in node.value.elements]
        elif isinstance(node, cst.Yield) and isinstance(node.value, cst.BaseExpression):
            groups = []
        elif isinstance(node, cst.Call) and called_name(node) in ("TensorDataset", "zip"):
            groups = [given.value for given in node.args]
        else:
            continue
        sides = [_subject(group) for group in groups]
        if name in sides:
            found |= {side for side in sides if side and side != name and (parameters is None or side in parameters)}
    return found


def _subject(node: cst.BaseExpression) -> str:
    """`y` of `y[a:b]`."""
    inner = node.value if isinstance(node, cst.Subscript) else node
    return inner.value if isinstance(inner, cst.Name) else ""


def one_order_for_two_loaders(source: Source) -> str:
    """Two loaders that are read side by side must not shuffle each for itself."""
    for loop in source.all(cst.For):
        if not (isinstance(loop.iter, cst.Call) and called_name(loop.iter) == "zip" and len(loop.iter.args) == 2):
            continue
        built = [_built_as(source, source.code(given.value)) for given in loop.iter.args]
        shuffling = [call for call in built if call is not None and is_true(call, 2, "shuffle")]
        if len(shuffling) == 2:
            for call in shuffling:
                set_argument(source, call, "shuffle", "False")
            return "both loaders keep the order of the data, so the pairs hold; to shuffle, put both sides into one data set"
    raise NotPossible("no two loaders that shuffle are read side by side")


def _built_as(source: Source, name: str) -> cst.Call | None:
    for node in source.all(cst.Assign):
        if (
            source.code(node.targets[0].target) == name
            and isinstance(node.value, cst.Call)
            and called_name(node.value) == "DataLoader"
        ):
            return node.value
    return None


def interleaved(source: Source, line: int) -> str:
    """`items[rank * n : (rank + 1) * n]` becomes `items[rank::world]`, which mixes long and short ones."""
    for node in source.all(cst.Subscript):
        cut = node.slice[0].slice if len(node.slice) == 1 else None
        if not isinstance(cut, cst.Slice) or cut.lower is None or cut.upper is None:
            continue
        found = re.fullmatch(r"(\w*rank\w*) \* (\w+)", source.code(cut.lower))
        if found and re.fullmatch(rf"\({found[1]} \+ 1\) \* {found[2]}", source.code(cut.upper)):
            world = next((name for name in ("world_size", "world", "n_ranks") if name in names_in(source.module)), "")
            if not world:
                break
            wanted = cst.parse_expression(f"x[{found[1]}::{world}]")
            assert isinstance(wanted, cst.Subscript)
            source.replace(cut, wanted.slice[0].slice)
            return f"line {source.first_line(node)} gives each rank every {world}-th entry, long and short ones alike"
    raise NotPossible("no line cuts the data into one block per rank")
