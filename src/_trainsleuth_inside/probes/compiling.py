"""Notices that the program compiles something; from then on no deep instrument is used."""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    original = torch.compile

    @stands_for(original)
    def compile(*args: Any, **kwargs: Any) -> Any:
        noticed()
        return original(*args, **kwargs)

    @probe.guard
    def noticed() -> None:
        if not watch.compiled:
            watch.something_is_compiled()
            watch.facts.write("compiled", at=places.caller(2))
            _look_through_our_frames(watch)

    torch.compile = compile

    module_compile = getattr(torch.nn.Module, "compile", None)
    if module_compile is not None:

        @stands_for(module_compile)
        def compile_module(self: Any, *args: Any, **kwargs: Any) -> None:
            noticed()
            module_compile(self, *args, **kwargs)

        torch.nn.Module.compile = compile_module


def _look_through_our_frames(watch: Watch) -> None:
    """Dynamo skips torch's own `Module.__call__` and compiles the forward below it; it should do the same with ours."""
    from torch._dynamo import eval_frame

    skip = getattr(eval_frame, "skip_code", None)
    if skip is not None:
        for code in watch.skip_when_compiling:
            skip(code)
