"""The YAML that configurations are written in: mappings, lists, plain and quoted scalars, block text, flow lists and mappings.

It needs no package, never builds objects and never fails: what it does not understand is counted. Tags such as `!!python/object` are
read as if they were not there; anchors and aliases are taken as text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MOST_DEPTH = 64
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][-+]?\d+)?")
_WORDS = {
    "true": True, "True": True, "TRUE": True, "yes": True, "Yes": True, "on": True, "On": True,
    "false": False, "False": False, "FALSE": False, "no": False, "No": False, "off": False, "Off": False,
    "null": None, "Null": None, "NULL": None, "~": None, "": None,
    ".nan": math.nan, ".NaN": math.nan, ".inf": math.inf, "-.inf": -math.inf, ".Inf": math.inf, "-.Inf": -math.inf,
}  # fmt: skip
_KEY = re.compile(r"""(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#\[\]{},&*!|>%@`-][^#]*?|-[^\s#][^#]*?)\s*:(?=\s|$)""")
_TAG = re.compile(r"^(?:!\S*|&\S+)(?:\s+|$)")


@dataclass
class Configuration:
    settings: dict[str, Any] = field(default_factory=dict)  # dotted name to plain value; a list item is named by its number
    not_understood: int = 0
    first_not_understood: int = 0


def read_settings(lines: Iterator[str]) -> Configuration:
    """All scalars of a document by their dotted names."""
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        reader.line(line.rstrip("\r\n"), number)
    reader.end()
    return reader.found


class _Reader:
    """Keeps, for the line at hand, the path that its indentation puts it on."""

    def __init__(self) -> None:
        self.found = Configuration()
        self._path: list[tuple[int, str]] = []  # indentation of a key, and the key
        self._counts: dict[str, int] = {}  # items of each list
        self._block: tuple[int, str, list[str], str] | None = None  # indentation of its key, name, lines, style
        self._flow: tuple[str, str] | None = None  # name, text so far

    def line(self, text: str, number: int) -> None:
        if self._block is not None and self._goes_on(text):
            return
        self._close_block()
        if self._flow is not None:
            self._more_flow(text, number)
            return
        bare = text.strip()
        if not bare or bare[0] in "#%" or bare in ("---", "...") or "\t" in text[: len(text) - len(text.lstrip())]:
            return
        self._entry(text, len(text) - len(text.lstrip(" ")), number)

    def end(self) -> None:
        self._close_block()
        if self._flow is not None:
            self._lost(0)

    def _lost(self, number: int) -> None:
        self.found.not_understood += 1
        self.found.first_not_understood = self.found.first_not_understood or number

    def _entry(self, text: str, indent: int, number: int) -> None:
        body = text[indent:]
        while body.startswith("- ") or body == "-":
            self._leave(indent, item=True)
            parent = self._name()
            index = self._counts.get(parent, 0)
            self._counts[parent] = index + 1
            self._path.append((indent, str(index)))
            rest = body[1:].lstrip(" ")
            indent += len(body) - len(rest)
            body = rest
            if not body or len(self._path) > MOST_DEPTH:
                return
            if _KEY.match(body) is None and not body.startswith("- "):
                self._value(self._name(), body, indent, number)
                return
        match = _KEY.match(body)
        if match is None or len(self._path) > MOST_DEPTH:
            self._lost(number)
            return
        self._leave(indent)
        self._path.append((indent, str(_scalar(match["key"])) if match["key"][0] in "\"'" else match["key"]))
        rest = _without_comment(body[match.end() :].strip())
        if rest:
            self._value(self._name(), rest, indent, number)

    def _leave(self, indent: int, item: bool = False) -> None:
        """Up to the mapping or list that a line of this indentation belongs to."""
        while self._path and (self._path[-1][0] > indent or (self._path[-1][0] == indent and not self._keeps(item))):
            self._path.pop()

    def _keeps(self, item: bool) -> bool:
        """A list may stand at the indentation of its own key."""
        return item and not self._path[-1][1].isdigit()

    def _name(self) -> str:
        return ".".join(key for _, key in self._path)

    def _value(self, name: str, text: str, indent: int, number: int) -> None:
        text = _TAG.sub("", _without_comment(text))
        text = _TAG.sub("", text)
        if not text:
            return
        if text[0] in "|>":
            self._block = (indent, name, [], text[0])
        elif text[0] in "[{":
            self._flow = (name, "")
            self._more_flow(text, number)
        else:
            self.found.settings[name] = _scalar(text)

    def _goes_on(self, text: str) -> bool:
        assert self._block is not None
        if text.strip() and len(text) - len(text.lstrip(" ")) <= self._block[0]:
            return False
        self._block[2].append(text.strip())
        return True

    def _close_block(self) -> None:
        if self._block is not None:
            _, name, lines, style = self._block
            self.found.settings[name] = ("\n" if style == "|" else " ").join(lines).strip()
            self._block = None

    def _more_flow(self, text: str, number: int) -> None:
        assert self._flow is not None
        name, before = self._flow
        whole = f"{before} {_without_comment(text.strip())}".strip()
        tokens = list(_tokens(whole))
        depth = sum(token in ("[", "{") for token in tokens) - sum(token in ("]", "}") for token in tokens)
        if depth > 0 and len(whole) < 1 << 16:
            self._flow = (name, whole)
            return
        self._flow = None
        try:
            value, rest = _flow_value(tokens, 0, 0)
        except (IndexError, ValueError):
            self._lost(number)
            return
        if rest != len(tokens):
            self._lost(number)
        self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, item in value.items():
                self._put(f"{name}.{key}", item)
        elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
            for index, item in enumerate(value):
                self._put(f"{name}.{index}", item)
        else:
            self.found.settings[name] = value


def _without_comment(text: str) -> str:
    """Without what follows ` #`, unless that stands in quotes."""
    if "#" not in text:
        return text
    quote = ""
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and (index == 0 or text[index - 1] in " [{,:"):
            quote = letter
        elif letter == "#" and (index == 0 or text[index - 1] in " \t"):
            return text[:index].rstrip()
    return text


_TOKEN = re.compile(
    r'''"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'''  # quoted
    r"""|[\[\]{},]|:(?=\s|$|[\[{"'])"""  # brackets, commas, colons
    r"""|[^\s\[\]{},:"'](?:[^\[\]{},:]|:(?=\S))*"""  # plain, with blanks inside
)


def _tokens(text: str) -> Iterator[str]:
    """Brackets, commas, colons, quoted strings and plain stretches of a flow value."""
    for match in _TOKEN.finditer(text):
        yield match[0].strip()


def _flow_value(tokens: list[str], at: int, depth: int) -> tuple[Any, int]:
    if depth > MOST_DEPTH:
        raise ValueError("too deep")
    token = tokens[at]
    if token == "[":
        items: list[Any] = []
        at += 1
        while tokens[at] != "]":
            if tokens[at] == ",":
                at += 1
                continue
            item, at = _flow_value(tokens, at, depth + 1)
            if tokens[at] == ":":
                value, at = _flow_value(tokens, at + 1, depth + 1)
                item = {str(item): value}
            items.append(item)
        return items, at + 1
    if token == "{":
        pairs: dict[str, Any] = {}
        at += 1
        while tokens[at] != "}":
            if tokens[at] == ",":
                at += 1
                continue
            key, at = _flow_value(tokens, at, depth + 1)
            value = None
            if tokens[at] == ":":
                at += 1
                if tokens[at] not in (",", "}"):
                    value, at = _flow_value(tokens, at, depth + 1)
            pairs[str(key)] = value
        return pairs, at + 1
    if token in "]},:":
        raise ValueError("a value was expected")
    return _scalar(token), at + 1


def _scalar(text: str) -> Any:
    """A scalar as YAML 1.1 reads it, and `1e-3` as everyone means it."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        try:
            return json.loads(text)
        except ValueError:
            return text[1:-1]
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 40:
        if _INTEGER.fullmatch(text):
            return int(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            try:
                return float(text.replace("_", ""))
            except ValueError:
                return text
    return text
