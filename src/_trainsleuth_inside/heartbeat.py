"""The heartbeat: a memory-mapped page that shows from outside where this process is, even when it hangs or was killed."""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import Tuple, Union

SIZE = 4096
LAYOUT = struct.Struct("<8sIIQQdd")  # magic, pid, phase, windows, backwards, since, started
CHANGING = struct.Struct("<IQQd")  # of those the four in the middle, phase to since
CHANGING_AT = PHASE_AT = 12
BACKWARDS = struct.Struct("<Q")
BACKWARDS_AT = 24
COLLECTIVE = struct.Struct("<QI")  # how many were entered so far, whether the last one is still going on
COLLECTIVE_AT = 64
NATIVE = struct.Struct("<Q")  # how many the default group has counted itself, DDP's own among them, after the latest backward
NATIVE_AT = 80
SHAPE, SLOTS, SLOTS_AT = 40, 32, 128
SLOT = struct.Struct("<QII40s")  # of the latest: count, number of the place, length of the shape, the shape
MAGIC = b"TSBEAT1\0"
PHASES = ("starting", "outside", "forward", "backward", "step", "data", "ended")
STARTING, OUTSIDE, FORWARD, BACKWARD, STEP, DATA, ENDED = range(7)


class Heartbeat:
    """A tick writes phase, counters and time. In hot places the phase alone is stored, as `page[PHASE_AT] = BACKWARD`.

    The page is fully allocated at once: a sparse page on a full disk would kill the training. Where there can be none, a
    piece of memory that nobody reads takes its place.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.windows = 0
        self.backwards = 0
        self.page: Union[mmap.mmap, bytearray] = bytearray(SIZE)
        self.open()

    def open(self) -> None:
        self.page = bytearray(SIZE)
        self._started = time.time()
        self._pid = os.getpid()
        self._path = path = os.path.join(self._folder, f"{self._pid}-{time.time_ns() // 1000:x}.beat")
        handle = -1
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle, 0, SIZE)
            else:
                os.write(handle, b"\0" * SIZE)
            self.page = mmap.mmap(handle, SIZE)
        except OSError:
            pass
        finally:
            if handle >= 0:
                os.close(handle)
        LAYOUT.pack_into(self.page, 0, MAGIC, self._pid, STARTING, self.windows, self.backwards, time.time(), self._started)

    def remove(self) -> None:
        """Take the page away: the process has ended well and nothing is to be learnt from it."""
        self.page = bytearray(SIZE)
        try:
            os.unlink(self._path)
        except OSError:
            pass

    def redirect(self, folder: str) -> None:
        self._folder = folder
        self.open()

    def enter_collective(self, count: int, number: int, shape: Tuple[int, ...]) -> None:
        """One of the latest collectives: its count on this rank, its place's number, its shape as text."""
        text = "x".join(map(str, shape)).encode()[:SHAPE]
        SLOT.pack_into(self.page, SLOTS_AT + SLOT.size * (count % SLOTS), count, number, len(text), text)
        COLLECTIVE.pack_into(self.page, COLLECTIVE_AT, count, 1)

    def leave_collective(self) -> None:
        self.page[COLLECTIVE_AT + 8] = 0

    def tick(self, phase: int) -> None:
        CHANGING.pack_into(self.page, CHANGING_AT, phase, self.windows, self.backwards, time.time())
