"""The log format of LevelDB, in which W&B stores its runs: blocks of 32 KB, records cut into pieces, each with a checksum."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

BLOCK = 32768
HEADER = 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
LARGEST_RECORD = 16 << 20


class BlockLog:
    """One pass over a file whose first block begins with `preamble` bytes of another kind; `damaged` counts what was passed over."""

    def __init__(self, file: BinaryIO, preamble: int) -> None:
        self._file = file
        self._preamble = preamble
        self.damaged = 0
        self.unfinished = False

    def records(self) -> Iterator[bytes]:
        pieces: list[bytes] = []
        size = 0
        for kind, piece in self._pieces():
            if kind in (FULL, FIRST):
                self.damaged += bool(pieces)
                pieces, size = [], 0
            elif not pieces:
                self.damaged += kind == LAST
                continue
            size += len(piece)
            if size > LARGEST_RECORD:
                self.damaged += 1
                pieces = []
                continue
            pieces.append(piece)
            if kind in (FULL, LAST):
                yield b"".join(pieces)
                pieces = []
        self.unfinished = self.unfinished or bool(pieces)

    def _pieces(self) -> Iterator[tuple[int, bytes]]:
        """Pieces whose checksum holds; after one that does not, the rest of its block cannot be trusted."""
        skip = self._preamble
        while True:
            block = self._file.read(BLOCK)
            at, skip = skip, 0
            while len(block) - at >= HEADER:
                checksum, length, kind = struct.unpack_from("<IHB", block, at)
                if kind == 0 and length == 0:  # zeros fill what is left of a block
                    break
                end = at + HEADER + length
                if end > len(block) and len(block) < BLOCK:
                    self.unfinished = True
                    return
                piece = block[at + HEADER : end]
                if end > len(block) or kind > LAST or zlib.crc32(block[at + 6 : end]) != checksum:
                    self.damaged += 1
                    break
                yield kind, piece
                at = end
            if len(block) < BLOCK:
                return
