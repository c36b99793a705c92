"""Cures `hang/queue-nobody-feeds` between two threads: the producer says that it is done, and the consumer listens."""

from __future__ import annotations

import libcst as cst

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import add_import, called, calls_at
from trainsleuth.remedies.source import NotPossible, Source


def end_mark(source: Source, line: int) -> str:
    """The producer puts None behind its last item, and the loop that gets items ends there."""
    for call in calls_at(source, line, "get"):
        if not isinstance(call.func, cst.Attribute):
            continue
        queue = source.code(call.func.value)
        loop = source.enclosing(call, cst.For) or source.enclosing(call, cst.While)
        statement = source.statement_of(call)
        puts = [put for put in called(source, "put") if isinstance(put.func, cst.Attribute) and source.code(put.func.value) == queue]
        producer = source.enclosing(puts[0], cst.FunctionDef) if len(puts) == 1 else None
        if loop is None or producer is None or not isinstance(statement, cst.SimpleStatementLine):
            continue
        if producer is source.enclosing(call, cst.FunctionDef):
            continue
        holder = next((above for above in source.above(puts[0]) if isinstance(above, (cst.For, cst.While))), None)
        if holder is None or not isinstance(producer.body, cst.IndentedBlock) or holder not in list(producer.body.body):
            continue
        name = _received(source, statement, call)
        source.before(statement, f"{name} = {source.code(call)}", f"if {name} is None:\n    break")
        if isinstance(source.parent(call), cst.Assign):
            source.remove(statement)
        else:
            source.replace(call, cst.Name(name))
        source.after(holder, f"{queue}.put(None)")
        last, first = source.span(holder).end.line, source.first_line(loop)
        return f"the producer puts an end mark (behind line {last}), and the loop in line {first} ends there"
    raise NotPossible(f"{source.path.name}:{line} does not get items, one by one, from a queue that one loop of this file fills")


def emptied_while_it_is_joined(desk: Desk, finding: Diagnosed) -> str:
    """What a thread still has to put is taken out until it has ended."""
    putting = list(desk.lines(finding, note="puts into a full queue"))
    calls = [(source, call) for source, line in putting for call in calls_at(source, line, "put")]
    fills = [source.code(call.func.value) for source, call in calls if isinstance(call.func, cst.Attribute)]
    for source, line in list(desk.lines(finding, note="waits for the thread to end")):
        for call in calls_at(source, line, "join"):
            if not fills or not isinstance(call.func, cst.Attribute) or call.args:
                continue
            thread, queue = source.code(call.func.value), fills[0]
            if queue.startswith("self.") != thread.startswith("self."):
                continue
            add_import(source, "from queue import Empty", "Empty")
            source.before(
                source.statement_of(call),
                f"while {thread}.is_alive():\n    try:\n        {queue}.get(timeout=0.1)\n    except Empty:\n        pass\n",
            )
            return f"{queue} is emptied until {thread} has ended (line {line})"
    raise NotPossible("no line waits for a thread that fills a queue of the same object")


def given_back_on_each_way(desk: Desk, finding: Diagnosed) -> str:
    """A loop that gives each entry back at its end does so before a `continue`, too."""
    lost = {
        source.code(call.func.value).rpartition(".")[2]
        for source, line in list(desk.lines(finding, note="waits for an entry, too")) for call in calls_at(source, line, "get")
        if isinstance(call.func, cst.Attribute)
    }  # fmt: skip
    sources = list(desk.sources_and_imports(finding))
    givers = {function.name.value for source in sources for put in _puts(source, lost)
              if (function := source.enclosing(put, cst.FunctionDef)) is not None and function.name.value != "__init__"}  # fmt: skip
    said = []
    for source in sources:
        giving = [*_puts(source, lost), *(call for call in called(source, *givers) if isinstance(call.func, cst.Attribute))] if givers else []
        for call in giving:
            statement = source.statement_of(call)
            block = source.block_of(statement)
            if source.enclosing(statement, cst.For) is None and source.enclosing(statement, cst.While) is None:
                continue
            for earlier in block[: block.index(statement)]:
                if isinstance(earlier, cst.If) and earlier.orelse is None and not any(source.covers(earlier, source.first_line(g)) for g in giving):
                    for leaves in source.all(cst.Continue, earlier):
                        source.before(source.statement_of(leaves), source.code(statement).strip())
                        said.append(str(source.first_line(leaves)))
    if not said:
        raise NotPossible("no loop leaves out what gives an entry back")
    return f"the entry is given back before the `continue` in line {', '.join(said)}, too"


def _puts(source: Source, queues: set[str]) -> list[cst.Call]:
    return [call for call in called(source, "put", "put_nowait")
            if isinstance(call.func, cst.Attribute) and source.code(call.func.value).rpartition(".")[2] in queues]  # fmt: skip


def _received(source: Source, statement: cst.SimpleStatementLine, call: cst.Call) -> str:
    """The name of the item: its own, or a new one."""
    above = source.parent(call)
    if isinstance(above, cst.Assign):
        target = above.targets[0].target
        if not isinstance(target, cst.Name):
            raise NotPossible("what comes from the queue is taken apart at once")
        return target.value
    return "item"
