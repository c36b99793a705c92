"""Knob `hidden-state-detached`: what is carried from step to step does not look back beyond the present batch.

Changes        the state that an RNN, LSTM or GRU is called with is detached; so are, after each backward, buffers and other tensors that a
               model keeps (moving means, code books, memories)
Mechanism      how far back the graph of the loss reaches
Not applicable when no recurrent layer is given a state with a graph, and no model keeps one
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "hidden-state-detached")

    def cut(state: Any) -> Any:
        if isinstance(state, tuple):
            return tuple(map(cut, state))
        if isinstance(state, torch.Tensor) and state.requires_grad:
            acted()
            return state.detach()
        return state

    def forget(*_: Any) -> None:
        for record in list(watch.models.values()):
            model = record.module()
            for module in model.modules() if model is not None else ():
                for kept in (module._buffers, vars(module)):
                    for name, value in list(kept.items()):
                        if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                            kept[name] = cut(value)

    watch.when_backward_ended.append(forget)
    for kind in (torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU):
        _cut_before(kind, cut)


def _cut_before(kind: Any, cut: Any) -> None:
    forward = kind.forward

    def detached(self: Any, input: Any, hx: Any = None) -> Any:
        return forward(self, input, None if hx is None else cut(hx))

    kind.forward = detached
