"""Records which seeds the program sets, and where; and how chance stood before, so that an unseeded run can be had again."""

from __future__ import annotations

import random
import sys
from typing import Any, Dict

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    original = torch.manual_seed

    @stands_for(original)
    def manual_seed(seed: Any) -> Any:
        seeded(seed)
        return original(seed)

    @probe.guard
    def seeded(seed: Any) -> None:
        at = places.caller(2)
        watch.facts.once(("seed", at), "seed", value=int(seed), at=at)

    note = probe.guard(lambda: watch.facts.write("chance", **_chance(torch)))
    note()
    watch.facts.when_redirected.append(note)
    torch.manual_seed = manual_seed
    torch.random.manual_seed = manual_seed


def _chance(torch: Any) -> Dict[str, Any]:
    """The states that random numbers come from when nobody has seeded anything yet."""
    version, numbers, gauss = random.getstate()
    numpy = sys.modules.get("numpy")
    state = numpy.random.get_state() if numpy is not None and hasattr(numpy, "random") else None
    return {
        "torch": int(torch.initial_seed()),
        "python": [version, list(numbers), gauss],
        "numpy": None if state is None else [state[1].tolist(), int(state[2])],
    }
