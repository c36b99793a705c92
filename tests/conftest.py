"""Fixtures: one fork server for the session, and ways to watch a zoo program or a piece of source."""

from __future__ import annotations

import itertools
import os
import signal
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trainsleuth.remedies.propose import STRICT
from watching import ZOO, ForkServer, Watched

_numbers = itertools.count()
os.environ[STRICT] = "1"
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in the background of a script: what we start would ignore Ctrl-C as well
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    made = ForkServer(tmp_path_factory.mktemp("server") / "case")
    yield made
    made.close()


@pytest.fixture
def run_zoo(server: ForkServer, tmp_path: Path) -> Callable[..., Watched]:
    """Watch a program of the zoo, named by its path below zoo/."""

    def run(name: str, *argv: str) -> Watched:
        return server.run(ZOO / name, tmp_path / f"case-{next(_numbers)}", argv)

    return run


@pytest.fixture
def run_source(server: ForkServer, tmp_path: Path) -> Callable[..., Watched]:
    """Watch a program given as source."""

    def run(source: str, *argv: str) -> Watched:
        script = tmp_path / f"program_{next(_numbers)}.py"
        script.write_text(textwrap.dedent(source))
        return server.run(script, tmp_path / f"case-{next(_numbers)}", argv)

    return run
