"""The end of a program is awaited without waking up."""

from __future__ import annotations

import subprocess
import sys

from trainsleuth.supervise.ending import Ending


def test_says_whether_the_program_still_runs_and_how_it_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Ending(child) as ending:
        assert ending.within(0.01) is None
        child.kill()
        assert ending.within(30) == -9
        assert ending.within(30) == -9


def test_a_bell_ends_the_wait_and_not_the_program() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Ending(child) as ending:
        ending.ring()
        assert ending.within(60) is None
        assert ending.within(0.01) is None
        child.kill()
        assert ending.within(30) == -9


def test_a_program_that_has_ended_before_is_no_different() -> None:
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    child.wait()
    with Ending(child) as ending:
        assert ending.within(30) == 3
    ending.ring()  # too late, and no harm
