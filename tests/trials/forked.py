"""Trials for tests, quickly: each is a fork of a process that has torch loaded, in the place of a sandbox."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from trainsleuth.case.folder import open_case
from trainsleuth.trials.bench import Bench
from trainsleuth.trials.sandbox import Ended
from trainsleuth.trials.trial import FROM_OUTSIDE, Trial
from watching import ForkServer


@dataclass
class Forked:
    """Runs a program with its knobs; a patched one from a copy beside its facts."""

    server: ForkServer
    script: Path
    jobs: int = 1

    def run(self, wanted: Trial, folder: Path, seconds: float, cancel: threading.Event) -> Ended:
        for part in ("facts", "beats"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        script = self.script
        if wanted.files:
            script = folder / script.name
            script.write_bytes(wanted.files[self.script])
        knobs = [{"knob": "every-window"}]
        knobs += [{"knob": s.knob, "options": dict(s.options)} for s in wanted.settings if s.knob not in FROM_OUTSIDE]
        began = time.monotonic()
        code = self.server.turn(script, folder, json.dumps(knobs))
        return Ended("exit", code, time.monotonic() - began)


def bench_of(server: ForkServer, script: Path, folder: Path) -> Bench:
    """The program is watched once, and its trials are forks."""
    seen = server.run(script, folder)
    assert seen.code == 0, seen.output
    bench = Bench(open_case(str(folder)), time.monotonic() + 200, unsafe=True, jobs=1)
    bench.executor = Forked(server, script)
    return bench
