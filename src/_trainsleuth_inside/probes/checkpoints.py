"""Records that the program reads weights from a file: such weights may be frozen, or left alone, on purpose."""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.import_hooks import after_import
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    @probe.guard
    def read(how: str) -> None:
        at = places.caller(2)
        watch.facts.once(("weights", at), "weights_file", how=how, at=at, windows=watch.windows)

    def patch(owner: Any, name: str, how: str) -> None:
        original = getattr(owner, name, None)
        if original is None:
            return

        @stands_for(original)
        def reading(*args: Any, **kwargs: Any) -> Any:
            read(how)
            return original(*args, **kwargs)

        setattr(owner, name, reading)

    patch(watch.torch, "load", "torch.load")
    patch(watch.torch.serialization, "load", "torch.load")
    after_import("safetensors", probe.guard(lambda module: patch(module, "safe_open", "safetensors")))
    after_import("safetensors.torch", probe.guard(lambda module: patch(module, "load_file", "safetensors")))
