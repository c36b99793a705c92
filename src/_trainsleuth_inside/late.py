"""Reads numbers off tensors late, so that watching never makes the program wait for its device.

On a CPU a value is there at once. On CUDA it is copied to pinned memory behind the work already queued, and read when an
event says that the copy is done; nothing is read while a CUDA graph is being captured.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, List, Tuple

from _trainsleuth_inside.aside import busy_of

MOST_WAITING = 256


class LateValues:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.busy = busy_of(torch)
        self._waiting: Deque[Tuple[Any, Any, Callable[[List[float]], None]]] = deque()

    def read(self, tensor: Any, then: Callable[[List[float]], None]) -> None:
        """Call `then` with the tensor's numbers, now or at a later poll."""
        device = tensor.device.type
        if device != "cuda":
            then(tensor.tolist())
            return
        if len(self._waiting) >= MOST_WAITING:
            return
        pinned = self._torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        pinned.copy_(tensor, non_blocking=True)
        event = self._torch.cuda.Event()
        event.record()
        self._waiting.append((event, pinned, then))

    def poll(self) -> None:
        while self._waiting and self._waiting[0][0].query():
            _, pinned, then = self._waiting.popleft()
            then(pinned.tolist())

    def drain(self) -> None:
        """At the end of the program waiting is no harm."""
        for event, pinned, then in self._waiting:
            event.synchronize()
            then(pinned.tolist())
        self._waiting.clear()
