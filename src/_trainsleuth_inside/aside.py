"""Says when the probes must step aside: what they compute while a program is compiled or traced becomes part of it."""

from __future__ import annotations

import sys
from typing import Any, Callable


def aside_of(torch: Any) -> Callable[[], bool]:
    """A function that is true while torch.compile, torch.export, torch.jit.trace or torch.fx reads the program."""
    compiling = torch.compiler.is_compiling
    tracing = torch._C._get_tracing_state
    symbolic = sys.modules.get("torch.fx._symbolic_trace")

    def aside() -> bool:
        return compiling() or tracing() is not None or getattr(symbolic, "_is_fx_tracing_flag", False)

    return aside


def busy_of(torch: Any) -> Callable[[], bool]:
    """A function that is true while no tensor may be read or made: also in vmap and the like, under a dispatch mode, and while
    a CUDA graph is captured."""
    tracing = torch._C._get_tracing_state
    transforms = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None)
    modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
    cuda = torch.cuda

    def busy() -> bool:
        if tracing() is not None or transforms() is not None or modes() > 0:
            return True
        return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())

    return busy


def readable(tensor: Any) -> bool:
    """Whether its numbers are its own: to read a sharded tensor costs a collective, a fake one has none, a nested one has no shape."""
    return getattr(type(tensor).__torch_dispatch__, "__name__", "") == "_disabled_torch_dispatch_impl" and not tensor.is_nested
