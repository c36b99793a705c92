"""Cures `hang/queue-nobody-feeds` between two threads: the producer says that it is done, and the consumer listens."""

from __future__ import annotations

import libcst as cst

from trainsleuth.remedies.expressions import called, calls_at
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


def _received(source: Source, statement: cst.SimpleStatementLine, call: cst.Call) -> str:
    """The name of the item: its own, or a new one."""
    above = source.parent(call)
    if isinstance(above, cst.Assign):
        target = above.targets[0].target
        if not isinstance(target, cst.Name):
            raise NotPossible("what comes from the queue is taken apart at once")
        return target.value
    return "item"
