"""What a log says in words: of the lines that tell nothing in numbers, those that may tell what is wrong are kept, one for each shape."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainsleuth.readers.kinds import Fact
from trainsleuth.readers.line_layout import LONGEST_LINE

MOST_MESSAGES = 3_000

# Sought in small letters, and each first letter stands once: only then does `re` pass over the signs at which nothing can begin.
_WORTH_KEEPING = re.compile(
    rb"amp\b|b(?:f16|it(?:(?<=\dbit)|(?<=\d-bit)))|cache|dataset|e(?:rror|mpty)|f(?:ail|all.?back|ile|ound|p16|p32|loat16|loat32)|"
    rb"i(?:nf(?<!\winf)\b|ncreasing|tem|mage)|killed|loaded|m(?:issing|ust be)|n(?:an\b|o such)|o(?:verflow|ut of memory|om\b)|"
    rb"precision|re(?:try|sum|stor)|s(?:kip|ample)|warn|0 (?<!\w0 )\w|: ?0\b|"
    + "警告|キャッシュ|缓存|캐시|サンプル|样本|샘플|エラー|错误|에러|データ|数据|데이터".encode()
)


@dataclass
class Message:
    number: int
    text: str
    at: int
    count: int = 0
    last_text: str = ""
    last: int = 0


class Messages:
    """The messages of a log by their shapes."""

    def __init__(self) -> None:
        self._known: dict[bytes, Message] = {}
        self._said: dict[int, Message] = {}  # since they were asked for; by when they were said first

    def note(self, shape: bytes, group: list[int], lines: list[bytes], numbers: Sequence[int]) -> None:
        """The lines of a block that have this shape."""
        known = self._known.get(shape)
        if known is None:
            first = lines[group[0]][:LONGEST_LINE]
            if len(self._known) >= MOST_MESSAGES or not _WORTH_KEEPING.search(first.lower()):
                return
            known = self._known[shape] = Message(len(self._known), _text(first), numbers[group[0]])
        self._said[known.number] = known
        known.count += len(group)
        known.last_text, known.last = _text(lines[group[-1]]), numbers[group[-1]]

    def news(self) -> list[Fact]:
        """Those that were said since this was asked last."""
        facts: list[Fact] = []
        for _, message in sorted(self._said.items()):
            facts.append({"k": "message", "text": message.text, "at": message.at, "count": message.count,
                          "last_text": message.last_text, "last": message.last})  # fmt: skip
            message.count = 0
        self._said.clear()
        return facts


def _text(line: bytes) -> str:
    return line[:400].decode("utf-8", "replace").strip()
