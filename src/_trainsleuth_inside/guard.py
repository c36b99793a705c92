"""Keeps a probe's failure away from the training: the probe switches itself off, says so, and the program goes on."""

from __future__ import annotations

import os
import signal
from typing import Any, Callable

from _trainsleuth_inside.facts import FactWriter

BROKEN_ON_PURPOSE = frozenset(filter(None, os.environ.get("TRAINSLEUTH_BREAK", "").split(",")))


class Probe:
    """One probe's name and whether it is still on."""

    def __init__(self, name: str, facts: FactWriter) -> None:
        self.name = name
        self.on = True
        self._facts = facts

    def guard(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """`work`, made safe: an exception inside ends the probe and nothing else."""
        if self.name in BROKEN_ON_PURPOSE:
            work = _raise

        def safe(*args: Any) -> Any:
            if self.on:
                try:
                    return work(*args)
                except Exception as problem:
                    if _came_by_signal(problem):
                        raise
                    self.fail(problem)
            return None

        return safe

    def fail(self, problem: BaseException) -> None:
        self.on = False
        line = problem.__traceback__.tb_lineno if problem.__traceback__ else 0
        at = problem.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
            line = at.tb_lineno
        where = os.path.basename(at.tb_frame.f_code.co_filename) if at is not None else "?"
        self._facts.write("probe_off", probe=self.name, why=f"{type(problem).__name__}: {problem} ({where}:{line})"[:300])


def _came_by_signal(problem: BaseException) -> bool:
    """Whether one of the program's signal handlers raised it (a time limit, say): it hit us by chance and is not ours to keep."""
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()}
    at = problem.__traceback__
    while at is not None:
        if at.tb_frame.f_code in handlers:
            return True
        at = at.tb_next
    return False


def _raise(*_: Any) -> None:
    raise RuntimeError("broken on purpose, for a test")
