"""Cures at a DataLoader: it shuffles, divides its data among the ranks, starts its workers afresh."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import (
    add_import,
    argument,
    called,
    calls_at,
    drop_argument,
    imported,
    iterated,
    loop_around,
    rewrite_as,
    set_argument,
)
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, names_in

MOST_TRIES = 1000


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


def shuffled_in_memory(source: Source, line: int) -> str:
    """A data set that can only be iterated is read as a whole, and then shuffled."""
    call = _loader(source, line)
    dataset = argument(call, 0, "dataset")
    if dataset is None or argument(call, None, "shuffle", "sampler", "batch_sampler") is not None:
        raise NotPossible("the loader has an order of its own")
    rewrite_as(source, dataset.value, "list({x})", x=dataset.value)
    set_argument(source, call, "shuffle", "True")
    return (
        f"the loader in line {source.first_line(call)} keeps all samples in memory and shuffles them; where they are too many, a larger buffer "
        "or shards that are mixed do it, too"
    )


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


def bounded_tries(source: Source, line: int) -> str:
    """A loop that tries until something holds gives up after a thousand tries, and goes on with the last one."""
    statement = source.statement_at(line)
    for loop in (statement, *source.above(statement)):
        if isinstance(loop, (cst.FunctionDef, cst.ClassDef)):
            break
        if not isinstance(loop, cst.While) or loop.orelse is not None or not isinstance(loop.body, cst.IndentedBlock):
            continue
        for_ever = m.matches(loop.test, m.Name("True") | m.Integer("1"))
        if for_ever and not any(isinstance(node, cst.Break) for node in everything(loop.body)):
            raise NotPossible(f"the loop of {source.path.name}:{source.first_line(loop)} is left by a return alone")
        stop = cst.parse_statement(f"if not ({source.code(loop.test)}):\n    break\n", config=source.module.config_for_parsing)
        first: list[cst.CSTNode] = [] if for_ever else [stop]

        def bounded(updated: cst.CSTNode, first: Sequence[cst.CSTNode] = first) -> cst.CSTNode:
            assert isinstance(updated, cst.While)
            assert isinstance(updated.body, cst.IndentedBlock)
            body = updated.body.with_changes(body=[*first, *updated.body.body])
            return cst.For(
                target=cst.Name("_"), iter=cst.parse_expression(f"range({MOST_TRIES})"), body=body, leading_lines=updated.leading_lines
            )

        source.edit(loop, bounded)
        return f"the loop of line {source.first_line(loop)} gives up after {MOST_TRIES} rounds and goes on with what it has"
    raise NotPossible(f"{source.path.name}:{line} is no part of a loop that tries again and again")


def batches_in_any_order(source: Source, line: int) -> str:
    """A batch sampler cuts its batches from samples in order: the batches go out in any order."""
    statement = source.statement_at(line)
    function = statement if isinstance(statement, cst.FunctionDef) else source.enclosing(statement, cst.FunctionDef)
    if function is None or function.name.value != "__iter__":
        raise NotPossible(f"{source.path.name}:{line} is no sampler of batches")
    for loop in source.all(cst.For, function):
        slices = m.Yield(value=m.Subscript(slice=[m.SubscriptElement(m.Slice())]))
        if m.matches(loop.iter, m.Call(func=m.Name("range"))) and any(m.matches(node, slices) for node in everything(loop.body)):
            numbers = source.code(loop.iter)
            add_import(source, "import random", "random")
            source.replace(loop.iter, cst.parse_expression(f"random.sample({numbers}, len({numbers}))"))
            return f"the batches that line {source.first_line(loop)} cuts go out in any order"
    raise NotPossible(f"no loop in {source.path.name}:{line} cuts batches one after the other")


def generator_of_each_worker(source: Source, line: int) -> str:
    """A data set makes its generator before it is copied to the workers: each worker makes its own when it begins to iterate."""
    statement = source.statement_at(line)
    owner = statement if isinstance(statement, cst.ClassDef) else source.enclosing(statement, cst.ClassDef)
    found = [one for one in source.all(cst.FunctionDef, owner) if one.name.value == "__iter__"] if owner is not None else []
    if owner is None or len(found) != 1 or not isinstance(found[0].body, cst.IndentedBlock):
        raise NotPossible(f"{source.path.name}:{line} is not part of a data set that is iterated")
    for node in source.all(cst.Assign, owner):
        name = source.code(node.targets[0].target)
        if not isinstance(node.value, cst.Call) or not name.startswith("self.") or source.enclosing(node, cst.FunctionDef) is found[0]:
            continue
        made = source.code(node.value.func)
        if not made.endswith(("default_rng", "RandomState", "random.Random", ".Random")):
            continue
        seed = "worker.seed % 2**32" if made.endswith("RandomState") else "worker.seed"
        if not imported(source, "get_worker_info"):
            add_import(source, "from torch.utils.data import get_worker_info", "get_worker_info")
        body = [one for one in found[0].body.body if isinstance(one, (cst.SimpleStatementLine, cst.BaseCompoundStatement))]
        first = body[1] if len(body) > 1 and m.matches(body[0], m.SimpleStatementLine([m.Expr(m.SimpleString())])) else body[0]
        source.before(first, "worker = get_worker_info()", f"if worker is not None:\n    {name} = {made}({seed})")
        return f"each worker makes {name} for itself when it begins to iterate (line {source.first_line(found[0])})"
    raise NotPossible("the data set makes no generator that could be made in the worker")


def no_workers(source: Source, line: int) -> str:
    """Samples are made in the main process, where the lock has its owner; it costs the parallel loading."""
    loaders = [call for call in called(source, "DataLoader") if _has_workers(call)]
    if len(loaders) != 1:
        raise NotPossible("no single loader with workers was found in this file")
    set_argument(source, loaders[0], "num_workers", "0")
    for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
        given = argument(loaders[0], None, name)
        if given is not None:
            drop_argument(source, loaders[0], given)
    return f"the loader in line {source.first_line(loaders[0])} makes samples in the main process; it costs the parallel loading"


def _has_workers(call: cst.Call) -> bool:
    given = argument(call, None, "num_workers")
    return given is not None and not m.matches(given.value, m.Integer("0"))


def _guarded(source: Source) -> bool:
    return any(isinstance(node, cst.If) and "__name__" in source.code(node.test) for node in source.module.body)


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
