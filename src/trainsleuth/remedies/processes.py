"""Cures of standstills between processes and threads: spawn for fork, thread limits, locks, calls without a time limit."""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import (
    add_import,
    argument,
    called,
    calls_at,
    drop_argument,
    rewrite_as,
    set_argument,
    text_of,
)
from trainsleuth.remedies.patch import Patch
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, names_in
from trainsleuth.remedies.values import written_out

LIMITS = ("OMP_THREAD_LIMIT", "OMP_DYNAMIC")
SECONDS = "60"
LOCK_WITHIN = {  # how a lock is made, and what of it is taken and given back
    **{f"{module}{kind}": "{x}" for module in ("threading.", "") for kind in ("Lock", "RLock", "Condition")},
    **{f"{module}{kind}": "{x}.mutex" for module in ("queue.", "") for kind in ("Queue", "LifoQueue", "PriorityQueue")},
}


def spawn(source: Source) -> str:
    """Children are started anew: `spawn` wherever the file says `fork`, or where it says nothing."""
    guarded = any(isinstance(node, cst.If) and "__name__" in source.code(node.test) for node in source.module.body)
    if not guarded and any(_does_something(node) for node in source.module.body):
        raise NotPossible('the program has no `if __name__ == "__main__":`, which spawned children need')
    found = [
        call for call in called(source, "get_context", "set_start_method")
        if call.args and text_of(call.args[0].value) in ("fork", "forkserver")
    ]  # fmt: skip
    for call in found:
        rewrite_as(source, call.args[0].value, '"spawn"')
    if found:
        lines = ", ".join(str(source.first_line(call)) for call in found)
        return f"children are started anew (spawn), not forked (line {lines})"
    made = [call for call in called(source, "Process", "Pool") if isinstance(call.func, cst.Attribute)
            and source.code(call.func.value) in ("mp", "multiprocessing", "torch.multiprocessing")]  # fmt: skip
    for call in made:
        assert isinstance(call.func, cst.Attribute)
        rewrite_as(source, call.func.value, '{x}.get_context("spawn")', x=call.func.value)
    executors = [call for call in called(source, "ProcessPoolExecutor") if argument(call, None, "mp_context") is None]
    for call in executors:
        add_import(source, "import multiprocessing", "multiprocessing")
        set_argument(source, call, "mp_context", 'multiprocessing.get_context("spawn")')
    plain = [call for call in called(source, "Process") if isinstance(call.func, cst.Name)]
    for call in plain:
        add_import(source, "import multiprocessing", "multiprocessing")
        source.replace(call.func, cst.parse_expression('multiprocessing.get_context("spawn").Process'))
    if not made and not executors and not plain:
        raise NotPossible("no line of this file starts a process")
    return "children are started anew (spawn), not forked"


def _does_something(node: cst.CSTNode) -> bool:
    """Whether a statement at the top of a file runs something, as a script does and a module that is imported does not."""
    if isinstance(node, (cst.For, cst.While, cst.With)):
        return True
    return isinstance(node, cst.SimpleStatementLine) and any(isinstance(part, cst.Expr) and isinstance(part.value, cst.Call) for part in node.body)


def one_thread(source: Source) -> str:
    """Without a team of threads there is none to miss in the child; it costs the parallel speed."""
    found = [call for call in called(source, "set_num_threads") if call.args]
    if not found:
        raise NotPossible("no line of this file sets the number of threads")
    for call in found:
        rewrite_as(source, call.args[0].value, "1")
    return f"torch uses one thread (line {source.first_line(found[0])}); it costs the parallel speed"


def one_thread_everywhere(source: Source) -> str:
    """The same where the file says nothing about threads."""
    tops = [node for node in source.module.body if isinstance(node, cst.SimpleStatementLine)
            and any(isinstance(part, (cst.Import, cst.ImportFrom)) for part in node.body)]  # fmt: skip
    if not tops or not any("torch" in source.code(node) for node in tops) or called(source, "set_num_threads"):
        raise NotPossible("torch is not imported here")
    source.after(tops[-1], "torch.set_num_threads(1)")
    return "torch uses one thread; it costs the parallel speed"


def no_limit(source: Source) -> str:
    """The line that limits OpenMP's threads goes."""
    for node in source.all(cst.Assign):
        target = node.targets[0].target
        if isinstance(target, cst.Subscript) and any(f'"{name}"' in source.code(target).replace("'", '"') for name in LIMITS):
            source.remove(node)
            return f"line {source.first_line(node)} no longer limits OpenMP's threads"
    for call in called(source, "setdefault", "putenv"):
        statement = source.parent(call)
        if call.args and text_of(call.args[0].value) in LIMITS and isinstance(statement, cst.Expr):
            source.remove(statement)
            return f"line {source.first_line(call)} no longer limits OpenMP's threads"
    for holder in source.all(cst.Dict):
        left = [entry for entry in holder.elements if not (isinstance(entry, cst.DictElement) and text_of(entry.key) in LIMITS)]
        if len(left) < len(holder.elements):
            if left:
                left[-1] = left[-1].with_changes(comma=holder.elements[-1].comma)
            source.edit(holder, lambda updated, left=left: updated.with_changes(elements=left))  # type: ignore[misc]
            return f"line {source.first_line(holder)} no longer limits OpenMP's threads"
    raise NotPossible("no line of this file limits OpenMP's threads")


def threads_within_the_limit(desk: Desk, finding: Diagnosed) -> str:
    """torch is told to use as many threads as the limit allows."""
    limit = next((found[1] for text in finding.evidence if (found := re.search(r"OMP_THREAD_LIMIT=(\d+)", text))), None)
    if limit is None:
        raise NotPossible("the limit is not known")
    for source, line in list(desk.lines(finding, note="asks for")):
        for call in called(source, "set_num_threads"):
            if source.covers(call, line) and call.args:
                try:
                    value = written_out(source, call.args[0].value)
                except NotPossible:
                    value = call.args[0].value
                rewrite_as(source, value, limit)
                return f"torch uses {limit} threads, as many as OMP_THREAD_LIMIT allows (line {source.first_line(value)})"
    raise NotPossible("no line sets the number of threads")


def without_the_limit(desk: Desk, finding: Diagnosed) -> Patch:
    """The variable comes from outside: run without it."""
    name = "OMP_DYNAMIC" if any("OMP_DYNAMIC" in text for text in finding.evidence) else "OMP_THREAD_LIMIT"
    return Patch("env", f"Run without {name}: `env -u {name} …`", environment={name: None})


def no_newest_instructions(desk: Desk, finding: Diagnosed) -> Patch:
    """An instruction that the processor does not bear is mostly oneDNN's, and oneDNN can be told."""
    if not any("SIGILL" in text for text in finding.evidence):
        raise NotPossible("it was no illegal instruction")
    name, value = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
    return Patch("env", f"Run with {name}={value}: oneDNN leaves the instructions alone that are newer.", environment={name: value})


def one_threading_layer(desk: Desk, finding: Diagnosed) -> Patch:
    return Patch("env", "Run with MKL_THREADING_LAYER=GNU, or install torch and numpy from one source.",
                 environment={"MKL_THREADING_LAYER": "GNU"})  # fmt: skip


def one_lock_for_both(desk: Desk, finding: Diagnosed) -> str:
    """Two locks that are made side by side and taken in both orders become one, which its holder may take again."""
    wanted: set[str] = set()
    for source, line in list(desk.lines(finding)):
        statement = source.statement_at(line)
        for above in (statement, *source.above(statement)):
            if isinstance(above, cst.With):
                wanted |= {source.code(item.item).rpartition(".")[2] for item in above.items}
    for source in desk.sources(finding):
        made = [
            node for node in source.all(cst.Assign)
            if isinstance(node.value, cst.Call) and called_name(node.value) in ("Lock", "RLock") and not node.value.args
            and source.code(node.targets[0].target).rpartition(".")[2] in wanted
        ]  # fmt: skip
        if len(made) != 2:
            continue
        first, second = made
        func = first.value.func if isinstance(first.value, cst.Call) else None
        if source.enclosing(first, cst.FunctionDef) is not source.enclosing(second, cst.FunctionDef):
            return _one_for_both_classes(source, first, second)
        if isinstance(func, cst.Attribute) and called_name(cst.Call(func)) == "Lock":
            source.replace(func.attr, cst.Name("RLock"))
        elif isinstance(func, cst.Name) and func.value == "Lock":
            source.replace(func, cst.Name("RLock"))
            add_import(source, "from threading import RLock", "RLock")
        source.replace(second.value, cst.parse_expression(source.code(first.targets[0].target)))
        return (
            f"the locks of line {source.first_line(first)} and {source.first_line(second)} are one, so no order can be wrong; "
            "what they guard is no longer done side by side"
        )
    raise NotPossible("the two locks are not made side by side where it can be seen")


def _one_for_both_classes(source: Source, first: cst.Assign, second: cst.Assign) -> str:
    """Each of two classes makes a lock of its own: both get one that the module makes."""
    top = next((above for above in source.above(source.statement_of(first)) if above in source.module.body), None)
    if not isinstance(top, (cst.ClassDef, cst.FunctionDef)):
        raise NotPossible("the two locks are not made where it can be seen")
    name = next(text for text in ("one_lock", "lock_for_both", "the_only_lock") if text not in names_in(source.module))
    source.before(top, f"{name} = threading.RLock()")
    add_import(source, "import threading", "threading")
    for one in (first, second):
        source.replace(one.value, cst.Name(name))
    return (
        f"the locks of line {source.first_line(first)} and {source.first_line(second)} are one, so no order can be wrong; "
        "what they guard is no longer done side by side"
    )


def free_at_a_fork(desk: Desk, finding: Diagnosed) -> str:
    """The locks at which the child stands are taken before a fork and given back behind it, as Python's own logging does it."""
    wanted = {name for source, line in list(desk.lines(finding)) for name in _guards(source, line)}
    said: list[str] = []
    for source in list(desk.sources_and_imports(finding)):
        before = len(said)
        for node in source.all(cst.Assign):
            target = node.targets[0].target
            if not isinstance(target, (cst.Name, cst.Attribute)) or source.code(target).rpartition(".")[2] not in wanted:
                continue
            if not isinstance(node.value, cst.Call) or not (inner := LOCK_WITHIN.get(source.code(node.value.func))):
                continue
            lock = inner.format(x=source.code(target))
            source.after(
                source.statement_of(node),
                f"os.register_at_fork(before={lock}.acquire, after_in_parent={lock}.release, after_in_child={lock}.release)",
            )
            said.append(f"{lock} (line {source.first_line(node)})")
        if len(said) > before:
            add_import(source, "import os", "os")
    if not said:
        raise NotPossible("the lock at which the child stands is not made where it can be seen")
    return f"a fork waits until no thread holds {', '.join(said)}"


def _guards(source: Source, line: int) -> list[str]:
    """What a line waits for, by its last name: `self.lock` of `with self.lock:`, `rows` of `self.rows.put(x)`."""
    statement = source.statement_at(line)
    held = [above for above in (statement, *source.above(statement)) if isinstance(above, cst.With)]
    names = [source.code(item.item) for block in held for item in block.items]
    if not isinstance(statement, cst.BaseCompoundStatement):
        names += [source.code(call.func.value) for call in everything(statement)
                  if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute)]  # fmt: skip
    return [name.removesuffix(".mutex").rpartition(".")[2] for name in names]


def reentrant(desk: Desk, finding: Diagnosed) -> str:
    """A thread that takes its own lock again needs an RLock; two threads in a ring are another matter."""
    if len({(place.file, place.line) for place in finding.where}) > 1:
        raise NotPossible("two threads wait for each other: the order of the locks must be decided")
    for source, line in list(desk.lines(finding)):
        statement = source.statement_at(line)
        wanted = [source.code(item.item) for item in statement.items] if isinstance(statement, cst.With) else []
        wanted += [source.code(call.func.value) for call in everything(statement)
                   if isinstance(call, cst.Call) and called_name(call) == "acquire" and isinstance(call.func, cst.Attribute)]  # fmt: skip
        for node in source.all(cst.Assign):
            if (
                source.code(node.targets[0].target) in wanted
                and isinstance(node.value, cst.Call)
                and called_name(node.value) == "Lock"
            ):
                new = cst.Name("RLock")
                func = node.value.func
                source.replace(func.attr if isinstance(func, cst.Attribute) else func, new)
                if isinstance(func, cst.Name):
                    add_import(source, "from threading import RLock", "RLock")
                return f"the lock in line {source.first_line(node)} may be taken again by the thread that holds it (RLock)"
    raise NotPossible("the lock is not made in this file")


def release_the_lock(source: Source) -> str:
    """`ctypes.PyDLL` keeps the interpreter's lock during a call; `CDLL` lets go of it."""
    for node in source.all(cst.Attribute):
        if m.matches(node, m.Attribute(value=m.Name("ctypes"), attr=m.Name("PyDLL"))):
            source.replace(node.attr, cst.Name("CDLL"))
            return f"line {source.first_line(node)} lets other threads run during the call (CDLL)"
    for node in source.all(cst.Attribute):
        if m.matches(node, m.Attribute(value=m.Name("ctypes"), attr=m.Name("pythonapi"))):
            raise NotPossible("the call goes to Python's own library, which needs the lock")
    raise NotPossible("no library is loaded with PyDLL")


def messages_to_the_terminal(desk: Desk, finding: Diagnosed) -> str:
    """`stderr=PIPE` that nobody reads: what the process says goes where the program's own messages go."""
    if not any("another of its pipes" in place.note or "a pipe that is full" in place.note for place in finding.where):
        raise NotPossible("it is not known which pipe is full")
    for source in desk.sources_and_imports(finding):
        for call in called(source, "Popen"):
            given = argument(call, None, "stderr")
            if given is None or not source.code(given.value).endswith("PIPE"):
                continue
            reads = [node for node in source.all(cst.Attribute) if node.attr.value == "stderr" and source.code(node.value) != "sys"]
            for node in reads:
                above = source.parent(source.parent(node) or node)  # `proc.stderr.read()`
                if not isinstance(above, cst.Call):
                    raise NotPossible("what the process says is used elsewhere")
                if not _in_a_raise(source, above):
                    raise NotPossible(f"line {source.first_line(node)} reads what the process says")
                whole = next((found for found in source.above(above) if isinstance(found, cst.Arg)), None)
                if whole is None:
                    raise NotPossible(f"line {source.first_line(node)} reads what the process says")
                source.replace(whole, cst.Arg(cst.parse_expression('"see what the process printed"')))
            drop_argument(source, call, given)
            line = source.first_line(call)
            return f"what the process says goes where the program's own messages go (line {line}), not into a pipe that nobody reads"
    raise NotPossible("no process of these files is started with stderr=PIPE")


def _in_a_raise(source: Source, node: cst.CSTNode) -> bool:
    return any(isinstance(above, cst.Raise) for above in source.above(node))


def read_while_waiting(source: Source, line: int) -> str:
    """`code = p.wait()` and then `p.stdout.read()`: `communicate` reads while it waits, so that no pipe fills."""
    statement = source.statement_at(line)
    waits = calls_at(source, line, "wait")
    whole = isinstance(statement, cst.SimpleStatementLine) or (isinstance(statement, cst.If) and not isinstance(source.parent(statement), cst.If))
    if len(waits) != 1 or not isinstance(waits[0].func, cst.Attribute) or not whole:
        raise NotPossible(f"{source.path.name}:{line} does not wait for a process by wait()")
    process = source.code(waits[0].func.value)
    home = source.enclosing(statement, cst.FunctionDef) or source.module
    taken = names_in(home)
    names = {stream: next(name for name in (stream, f"{stream}_text", f"all_{stream}") if name not in taken) for stream in ("out", "err")}
    reads = {"stdout": names["out"], "stderr": names["err"]}
    read = [call for call in called(source, "read", below=home)
            if isinstance(call.func, cst.Attribute) and source.code(call.func.value) in [f"{process}.{stream}" for stream in reads]]  # fmt: skip
    if not read or any(source.first_line(call) < line or call.args for call in read):
        raise NotPossible(f"what {process} writes is not read as a whole after line {line}")
    for call in read:
        assert isinstance(call.func, cst.Attribute)
        source.replace(call, cst.Name(reads[source.code(call.func.value).rpartition(".")[2]]))
    limit = "" if not waits[0].args else ", ".join(source.code(given) for given in waits[0].args)
    reading = f"{names['out']}, {names['err']} = {process}.communicate({limit})"
    alone = source.parent(waits[0])
    if isinstance(alone, cst.Expr):
        assign = cst.ensure_type(cst.parse_statement(reading), cst.SimpleStatementLine).body[0]
        source.replace(alone, assign)
    else:
        source.before(statement, reading)
        source.replace(waits[0], cst.parse_expression(f"{process}.returncode"))
    return f"line {line} reads what {process} writes while it waits for it"


def time_limit(source: Source, line: int) -> str:
    """A connection or a download gets a time limit; without an answer the program says so instead of standing."""
    scope = source.enclosing(source.statement_at(line), cst.ClassDef) or source.enclosing(
        source.statement_at(line), cst.FunctionDef
    )
    for call in called(source, "create_connection", "urlopen", "HTTPConnection", "HTTPSConnection", below=scope or source.module):
        if argument(call, None, "timeout") is None:
            set_argument(source, call, "timeout", SECONDS)
            return f"{called_name(call)} in line {source.first_line(call)} waits at most {SECONDS} seconds"
    for call in called(source, "get", "post", "request", below=scope or source.module):
        if (
            isinstance(call.func, cst.Attribute)
            and source.code(call.func.value) == "requests"
            and argument(call, None, "timeout") is None
        ):
            set_argument(source, call, "timeout", SECONDS)
            return f"the request in line {source.first_line(call)} waits at most {SECONDS} seconds"
    raise NotPossible(f"nothing near {source.path.name}:{line} takes a time limit")
