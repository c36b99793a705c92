"""What happens when the program has imported torch: every probe is installed, and the knobs of a trial are set."""

from __future__ import annotations

import os
from typing import Any, Callable, Tuple

from _trainsleuth_inside import knobs
from _trainsleuth_inside.facts import FactWriter
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.heartbeat import Heartbeat
from _trainsleuth_inside.probes import (
    autograd,
    checkpointing,
    checkpoints,
    collectives,
    compiling,
    environment,
    freezing,
    functions,
    grad_modes,
    kept_states,
    loaders,
    loggers,
    losses,
    modules,
    optimizers,
    precision,
    scalers,
    schedulers,
    seeds,
    stored_samples,
    threads,
)
from _trainsleuth_inside.watch import Watch

Install = Callable[[Watch, Probe], None]
PROBES: Tuple[Tuple[str, Install], ...] = (
    ("environment", environment.install),
    ("seeds", seeds.install),
    ("freezing", freezing.install),
    ("compiling", compiling.install),
    ("optimizers", optimizers.install),
    ("autograd", autograd.install),
    ("modules", modules.install),
    ("kept_states", kept_states.install),
    ("grad_modes", grad_modes.install),
    ("losses", losses.install),
    ("scalers", scalers.install),
    ("precision", precision.install),
    ("schedulers", schedulers.install),
    ("stored_samples", stored_samples.install),
    ("loaders", loaders.install),
    ("loggers", loggers.install),
    ("checkpoints", checkpoints.install),
    ("checkpointing", checkpointing.install),
    ("functions", functions.install),
    ("threads", threads.install),
    ("collectives", collectives.install),
)


def torch_imported(torch: Any, facts: FactWriter, beat: Heartbeat) -> None:
    watch = Watch(torch, facts, beat, float(os.environ.get("TRAINSLEUTH_BUDGET", "0.01")))
    for name, install in PROBES:
        probe = Probe(name, facts)
        try:
            install(watch, probe)
        except Exception as problem:
            probe.fail(problem)
    facts.before_exit.append(Probe("ending", facts).guard(watch.end))
    knobs.set_from_environment(watch)
