"""Reads a pickle that holds nothing but plain data, without unpickling it.

A pickle is a program for a small machine with a stack. Only those of its instructions are carried out here that make numbers, text, lists,
tuples and dicts. One that names a class, calls something or asks for an object ends the reading: nothing is imported, nothing is called.
"""

from __future__ import annotations

import pickletools
from typing import Any

_VALUES = frozenset((
    "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES",
    "BINBYTES",
))  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class NotPlain(ValueError):
    """The pickle is not whole, or asks for more than plain data."""


def plain(content: bytes) -> Any:
    """What the pickle holds; parts of it may be one and the same object."""
    try:
        return _Stack().run(content)
    except NotPlain:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as problem:
        raise NotPlain(f"not a whole pickle: {problem}") from None


class _Stack:
    def __init__(self) -> None:
        self._items: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[Any, Any] = {}

    def run(self, content: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(content):
            name = opcode.name
            if name in _VALUES:
                self._items.append(argument)
            elif name in _CONSTANTS:
                self._items.append(_CONSTANTS[name])
            elif name in ("BINGET", "LONG_BINGET"):
                self._items.append(self._memo[argument])
            elif name in ("BINPUT", "LONG_BINPUT"):
                self._memo[argument] = self._items[-1]
            elif name == "STOP":
                return self._items.pop()
            elif name not in ("PROTO", "FRAME"):
                self._build(name)
        raise NotPlain("it has no end")

    def _build(self, name: str) -> None:
        items = self._items
        if name == "MARK":
            self._marks.append(len(items))
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = items[-1]
        elif name == "EMPTY_DICT":
            items.append({})
        elif name == "EMPTY_LIST":
            items.append([])
        elif name in _TUPLES:
            items.append(tuple(self._above(len(items) - _TUPLES[name])))
        elif name == "TUPLE":
            items.append(tuple(self._above(self._marks.pop())))
        elif name in ("APPEND", "APPENDS"):
            new = self._above(len(items) - 1 if name == "APPEND" else self._marks.pop())
            self._top(list).extend(new)
        elif name in ("SETITEM", "SETITEMS"):
            new = self._above(len(items) - 2 if name == "SETITEM" else self._marks.pop())
            held = self._top(dict)
            for key, value in zip(new[::2], new[1::2], strict=True):
                if not isinstance(key, (str, int, float)):
                    raise NotPlain("a key that is no text or number")
                held[key] = value
        else:
            raise NotPlain(f"it asks for more than plain data ({name})")

    def _above(self, start: int) -> list[Any]:
        """Take everything above this place off the stack."""
        if start < 0:
            raise NotPlain("it takes more than there is")
        taken = self._items[start:]
        del self._items[start:]
        return taken

    def _top(self, kind: type) -> Any:
        if type(self._items[-1]) is not kind:
            raise NotPlain("it puts things where nothing can be put")
        return self._items[-1]
