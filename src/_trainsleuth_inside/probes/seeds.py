"""Records which seeds the program sets, and where."""

from __future__ import annotations

from typing import Any

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

    torch.manual_seed = manual_seed
    torch.random.manual_seed = manual_seed
