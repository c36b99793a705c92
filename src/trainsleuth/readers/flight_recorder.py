"""PyTorch's flight recorder: the collectives a rank entered, their states, and the lines that called them.

`torch.distributed` writes its dumps as pickle files, or as JSON, which lacks the lines. To unpickle is to run whatever the file says. So it
is not unpickled: `plain_pickle` reads the plain data in it, and a file that holds anything else is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainsleuth.readers.kinds import Fact, skipped
from trainsleuth.readers.plain_pickle import NotPlain, plain

NAME = "PyTorch flight recorder"
LARGEST = 256 << 20
LARGEST_PICKLE = 64 << 20
MOST_ENTRIES = 20_000
MOST_FRAMES = 40
MOST_SIZES = 8
REFUSED = "flight recorder dump in pickle form that is not read further, as to unpickle is to run what it says"


def recognises(path: Path, head: bytes) -> bool:
    return _is_pickle(path, head) or (head.lstrip()[:1] == b"{" and b'"entries"' in head and b'"pg_config"' in head)


def _is_pickle(path: Path, head: bytes) -> bool:
    return head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and (
        b"pg_config" in head or b"nccl_version" in head or re.search(r"(nccl|fr)_trace_rank_?\d+$", path.name) is not None
    )  # fmt: skip


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST)
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)
        return
    try:
        if _is_pickle(path, content[:65536]):
            dump = plain(content[:LARGEST_PICKLE])
        else:
            dump = json.loads(content.decode("utf-8", "replace"))
    except NotPlain as problem:
        yield skipped(f"{REFUSED}: {problem}", 1, 0)
        return
    except (ValueError, RecursionError):
        yield skipped("file that is not whole JSON (cut off, or larger than 256 MB)", 1, 0)
        return
    entries = dump.get("entries") if isinstance(dump, dict) else None
    if not isinstance(entries, list):
        yield skipped("file without entries", 1, 0)
        return
    rank = dump["rank"] if _is_count(dump.get("rank")) else _rank_in(path.name)
    odd = 0
    for entry in entries[-MOST_ENTRIES:]:
        fact = _collective(entry, rank)
        if fact is None:
            odd += 1
        else:
            yield fact
    if odd:
        yield skipped("entry that is not understood", odd, 0)


def _rank_in(name: str) -> int | None:
    match = re.search(r"(\d{1,6})(?:\.json)?$", name)
    return int(match[1]) if match else None


def _collective(entry: Any, rank: int | None) -> Fact | None:
    """One collective: its number in the group, what it is, how far it came, and the lines below it, innermost first."""
    if not isinstance(entry, dict):
        return None
    number = next((entry[key] for key in ("collective_seq_id", "seq_id", "record_id") if _is_count(entry.get(key))), None)
    if number is None:
        return None
    return {
        "k": "flight", "rank": rank, "number": number, "name": _text(entry.get("profiling_name"))[:120],
        "state": _text(entry.get("state"))[:40], "done": entry.get("retired") is True or entry.get("state") == "completed",
        "group": _group(entry.get("process_group")), "sizes": _sizes(entry.get("input_sizes")), "frames": _frames(entry.get("frames")),
        "pair": entry.get("is_p2p") is True,
    }  # fmt: skip


def _frames(value: Any) -> list[list[Any]]:
    frames = value[:MOST_FRAMES] if isinstance(value, list) else []
    return [
        [_text(frame.get("filename")), frame["line"], _text(frame.get("name"))]
        for frame in frames
        if isinstance(frame, dict) and _is_count(frame.get("line"))
    ]


def _sizes(value: Any) -> list[list[int]]:
    shapes = value[:MOST_SIZES] if isinstance(value, list) else []
    return [[size for size in shape[:MOST_SIZES] if _is_count(size)] for shape in shapes if isinstance(shape, list)]


def _group(value: Any) -> str:
    return " ".join(map(_text, value[:4]))[:120] if isinstance(value, (list, tuple)) else _text(value)[:120]


def _text(value: Any) -> str:
    """Text and numbers as they are; anything else might hold itself."""
    return value[:1000] if isinstance(value, str) else str(value) if _is_count(value) else "?"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 62
