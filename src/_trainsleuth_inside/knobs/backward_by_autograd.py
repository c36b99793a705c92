"""Knob `backward-by-autograd`: autograd derives the backward of the named Functions from their forward.

Changes        a Function of the program's own whose backward the finding names: its forward runs as plain operations
Mechanism      a backward that was written by hand
Not applicable when forward leaves autograd (numpy, `.data`, no_grad, a kernel of its own), so that nothing can be derived
"""

from __future__ import annotations

from typing import Any, Sequence

from _trainsleuth_inside.knobs.acting import holds_line, lines, says


def turn(watch: Any, at: Sequence[Sequence[Any]] = ()) -> None:
    torch = watch.torch
    wanted = lines(at)
    acted = says(watch, "backward-by-autograd")
    base = torch.autograd.Function
    apply = base.__dict__["apply"].__func__
    chosen = {}

    def is_meant(kind: Any) -> bool:
        code = getattr(kind.backward, "__code__", None)
        return code is not None and holds_line(code, wanted)

    def derived(kind: Any, *args: Any, **kwargs: Any) -> Any:
        if kind not in chosen:
            chosen[kind] = is_meant(kind)
        if not chosen[kind] or not torch.is_grad_enabled():
            return apply(kind, *args, **kwargs)
        needed = [isinstance(value, torch.Tensor) and value.requires_grad for value in args]
        own_context = kind.setup_context is not base.setup_context
        given = [value.view_as(value) if needs else value for value, needs in zip(args, needed)]  # what changes a leaf in place may
        result = kind.forward(*given, **kwargs) if own_context else kind.forward(_Context(needed), *given, **kwargs)
        first = result[0] if isinstance(result, tuple) else result
        if any(needed) and not first.requires_grad:
            chosen[kind] = False
            return apply(kind, *args, **kwargs)
        acted(function=kind.__name__)
        return result

    base.apply = classmethod(derived)


class _Context:
    """Takes what forward keeps for a backward that is not called."""

    def __init__(self, needed: Sequence[bool]) -> None:
        self.needs_input_grad = tuple(needed)

    def save_for_backward(self, *tensors: Any) -> None:
        pass

    save_for_forward = mark_dirty = mark_non_differentiable = save_for_backward

    def set_materialize_grads(self, value: bool) -> None:
        pass
