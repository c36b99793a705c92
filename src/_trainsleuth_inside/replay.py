"""Looks for the first bad operation on the spot: replays the recorded call of the model, and leaves no trace of that.

Only in windows that are looked at, in a program of one process that compiles nothing. The call is repeated with the arguments,
the random numbers and the precision that it had, nothing is printed, and buffers, attributes and random states are put back. Where
that is not possible (a model with hooks of the program's own, an argument that is gone, weights that are bad already) nothing is
replayed: the supervisor then runs the program again in a sandbox.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
import time
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

MOST_ATTEMPTS = 2
MOST_SECONDS, SLOWER = 20.0, 20.0
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Replay:
    def __init__(self, watch: Any) -> None:
        self._watch = watch
        self._call: Optional[Dict[str, Any]] = None
        self._loss: Optional[Tuple[Any, List[Any], Dict[str, Any]]] = None
        self._attempts = 0

    def record(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """Before a call that may have to be repeated."""
        if self._attempts < MOST_ATTEMPTS and not self._watch.one_of_many:
            torch = self._watch.torch
            self._call = {
                "module": weakref.ref(module),
                "args": [_held(torch, value) for value in args],
                "kwargs": {name: _held(torch, value) for name, value in kwargs.items()},
                "chance": torch.get_rng_state(),
                "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
                "began": time.perf_counter(),
            }
            self._loss = None

    def record_loss(self, function: Any, args: Any, kwargs: Any) -> None:
        """After a loss function was called on what the model gave."""
        if self._call is not None:
            torch = self._watch.torch
            self._loss = (function, [_held(torch, value) for value in args], {k: _held(torch, v) for k, v in kwargs.items()})

    def forget(self) -> None:
        self._call = self._loss = None

    def look(self) -> None:
        """The loss is bad: which operation of the recorded call made it so?"""
        watch, call = self._watch, self._call
        if call is None or self._attempts >= MOST_ATTEMPTS or watch.compiled or watch.late.busy():
            return
        self._attempts += 1
        module = call["module"]()
        if SLOWER * (time.perf_counter() - call["began"]) > MOST_SECONDS:
            return
        if module is None or not self._may_be_repeated(module):
            return
        try:
            args = [_given(value) for value in call["args"]]
            kwargs = {name: _given(value) for name, value in call["kwargs"].items()}
        except LookupError:
            return
        began = time.time()
        origin = self._origin(module, args, kwargs, call)
        if origin is not None and origin["op"] != "given":
            origin["above"] = []  # they would be the lines of this replay
            watch.facts.write(
                "examined", result="origin", how="live", looked_for="bad-number", sink="loss", origin=origin,
                windows=watch.windows, backwards=watch.backwards - 1, seconds=round(time.time() - began, 3),
            )  # fmt: skip

    def _may_be_repeated(self, module: Any) -> bool:
        torch = self._watch.torch
        if any(getattr(child, name, None) for child in module.modules() for name in HOOKS):
            return False
        tensors = [*module.parameters(), *module.buffers()]
        if any(tensor.device.type != "cpu" for tensor in tensors):
            return False
        return all(bool(torch.isfinite(tensor).all()) for tensor in module.parameters())

    def _origin(self, module: Any, args: List[Any], kwargs: Dict[str, Any], call: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        from _trainsleuth_inside.instruments.first_bad import FirstBad
        from _trainsleuth_inside.instruments.numbers import tensors_in

        torch = self._watch.torch
        book = FirstBad(self._watch)
        enabled, dtype = call["autocast"]
        with _as_before(torch, module), _unheard(), torch.enable_grad(), torch.autocast("cpu", dtype=dtype, enabled=enabled):
            torch.set_rng_state(call["chance"])
            with book.mode:
                result = type(module).__call__(module, *args, **kwargs)
            for tensor in tensors_in(torch, result):
                found = book.blame(tensor)
                if found is not None:
                    return found
            return self._origin_in_loss(book)

    def _origin_in_loss(self, book: Any) -> Optional[Dict[str, Any]]:
        if self._loss is None:
            return None
        function, args, kwargs = self._loss
        try:
            given, named = [_given(value) for value in args], {name: _given(value) for name, value in kwargs.items()}
        except LookupError:
            return None
        with book.mode:
            value = function(*given, **named)
        found: Optional[Dict[str, Any]] = book.blame(value)
        return found


def _held(torch: Any, value: Any) -> Any:
    """A tensor is not kept alive for our sake."""
    return weakref.ref(value) if isinstance(value, torch.Tensor) else value


def _given(value: Any) -> Any:
    if isinstance(value, weakref.ref):
        value = value()
        if value is None:
            raise LookupError
    return value


@contextlib.contextmanager
def _as_before(torch: Any, module: Any) -> Iterator[None]:
    """Whatever the call changes in the model or in the random states is put back."""
    chance, python = torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    other = numpy.random.get_state() if numpy is not None else None
    children = list(module.modules())
    attributes = [dict(child.__dict__) for child in children]
    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    slots = [dict(child._buffers) for child in children]
    try:
        yield
    finally:
        for child, before, owned in zip(children, attributes, slots):
            child.__dict__.clear()
            child.__dict__.update(before)
            child._buffers.clear()
            child._buffers.update(owned)
        with torch.no_grad():
            for buffer, numbers in buffers:
                buffer.copy_(numbers)
        torch.set_rng_state(chance)
        random.setstate(python)
        if numpy is not None and other is not None:
            numpy.random.set_state(other)


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """What the model prints was printed before."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
