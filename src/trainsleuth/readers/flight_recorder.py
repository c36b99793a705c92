"""PyTorch's flight recorder as JSON: the collectives a rank entered, their states, and the lines that called them.

`torch.distributed` writes its own dumps as pickle files. To open a pickle is to run whatever it says, so those are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainsleuth.readers.kinds import Fact, skipped

NAME = "PyTorch flight recorder"
LARGEST = 256 << 20
MOST_ENTRIES = 20_000
REFUSED = (
    "flight recorder dump in pickle form: to open a pickle is to run what it says, so it is not opened. In the program, "
    "`torch._C._distributed_c10d._dump_fr_trace_json()` gives the same as JSON (for NCCL `_dump_nccl_trace_json`)"
)


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
    if _is_pickle(path, content[:65536]):
        yield skipped(REFUSED, 1, 0)
        return
    try:
        dump = json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        yield skipped("file that is not whole JSON (cut off, or larger than 256 MB)", 1, 0)
        return
    entries = dump.get("entries") if isinstance(dump, dict) else None
    if not isinstance(entries, list):
        yield skipped("file without entries", 1, 0)
        return
    rank = dump.get("rank") if isinstance(dump.get("rank"), int) else _rank_in(path.name)
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
    number = next((entry[key] for key in ("collective_seq_id", "seq_id", "record_id") if isinstance(entry.get(key), int)), None)
    if number is None:
        return None
    frames = [
        [str(frame.get("filename", "?")), frame["line"], str(frame.get("name", ""))]
        for frame in entry.get("frames") or []
        if isinstance(frame, dict) and isinstance(frame.get("line"), int)
    ]
    return {
        "k": "flight", "rank": rank, "number": number, "name": str(entry.get("profiling_name", "?"))[:120],
        "state": str(entry.get("state", "?"))[:40], "group": _group(entry.get("process_group")),
        "sizes": entry.get("input_sizes") if isinstance(entry.get("input_sizes"), list) else [], "frames": frames[:40],
    }  # fmt: skip


def _group(value: Any) -> str:
    return " ".join(map(str, value))[:120] if isinstance(value, list) else str(value or "")[:120]
