"""Starts everything inside a Python process: the fact file, the heartbeat, and the probes once torch is imported."""

from __future__ import annotations

import atexit
import os
import platform
import socket
import sys
import time
from typing import Any, Dict, List

from _trainsleuth_inside import import_hooks
from _trainsleuth_inside.facts import FactWriter
from _trainsleuth_inside.heartbeat import ENDED, Heartbeat
from _trainsleuth_inside.secrets import without_secrets
from _trainsleuth_inside.variables import that_are_set


def _header() -> Dict[str, Any]:
    environment = os.environ
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "command": without_secrets(getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv]),
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "rank": _number(environment.get("RANK")),
        "local_rank": _number(environment.get("LOCAL_RANK")),
        "world": _number(environment.get("WORLD_SIZE")),
        "variables": that_are_set(),
    }


def _number(text: Any) -> Any:
    return int(text) if isinstance(text, str) and text.isdigit() else None


_writers: List[Any] = []


def redirect(case: str) -> None:
    """Send what is written from now on to another case: for a process that forks and runs several programs."""
    facts, beat = _writers
    facts.redirect(os.path.join(case, "facts"))
    beat.redirect(os.path.join(case, "beats"))


def begin() -> None:
    case = os.environ["TRAINSLEUTH_CASE"]
    facts = FactWriter(os.path.join(case, "facts"), _header)
    beat = Heartbeat(os.environ.get("TRAINSLEUTH_BEATS") or os.path.join(case, "beats"))
    _writers[:] = [facts, beat]
    from _trainsleuth_inside import dump_on_signal, knobs
    from _trainsleuth_inside.guard import Probe
    from _trainsleuth_inside.probes import crash, forking

    facts.when_opened.append(dump_on_signal.on_a_fault)
    facts.write("started", at=time.time())
    crash.install(facts)
    forking.install(facts)
    dump_on_signal.install(os.environ.get("TRAINSLEUTH_BEATS") or os.path.join(case, "beats"))

    def forked() -> None:
        facts.forked()
        beat.open()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked)

    first = os.getpid()
    gone = {"pid": 0}

    def ended(*_: Any) -> None:
        if gone["pid"] == os.getpid():
            return
        gone["pid"] = os.getpid()
        for last_words in facts.before_exit:
            last_words()
        if facts.silent and os.getpid() != first:  # a data loader's worker, say: there may be thousands in a day
            beat.remove()
            dump_on_signal.remove()
            return
        facts.write("exit")
        beat.tick(ENDED)
        dump_on_signal.remove()

    atexit.register(ended)

    def torch_arrived(torch: Any) -> None:
        from _trainsleuth_inside import arrival

        arrival.torch_imported(torch, facts, beat)
        _end_in_forked_children_too(ended)

    import_hooks.after_import("torch", Probe("all", facts).guard(torch_arrived))
    knobs.set_at_the_start(facts)


def _end_in_forked_children_too(ended: Any) -> None:
    """A child that multiprocessing forks leaves by os._exit, past atexit; it has its own list of last things to do."""
    from multiprocessing import util

    util.register_after_fork(ended, lambda _: util.Finalize(None, ended, exitpriority=0))  # type: ignore[attr-defined]
