"""Names for modules that are the same in every run of a program: the class of the model that the program calls, and the path inside it."""

from __future__ import annotations

import weakref
from typing import Any, Dict, Tuple


class Addresses:
    """`DBNet.head.binarize`; a second model of the same class is `DBNet#2`."""

    def __init__(self) -> None:
        self._known: Dict[int, Tuple[Any, str]] = {}
        self._roots: Dict[str, int] = {}

    def of(self, module: Any, root: Any) -> str:
        """The address of a module that is called within `root`, the model that the program itself has called."""
        known = self._known.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        if module is not root:
            top = self.of(root, root)
            for path, child in root.named_modules():
                if path:
                    self._note(child, "%s.%s" % (top, path))
            known = self._known.get(id(module))
            if known is not None and known[0]() is module:
                return known[1]
        kind = type(module).__name__
        count = self._roots[kind] = self._roots.get(kind, 0) + 1
        return self._note(module, kind if count == 1 else "%s#%d" % (kind, count))

    def _note(self, module: Any, address: str) -> str:
        known = self._known.get(id(module))
        if known is None or known[0]() is not module:
            self._known[id(module)] = (weakref.ref(module), address)
        return self._known[id(module)][1]


def path_in(address: str) -> str:
    """The path inside the model, without the model's class."""
    return address.partition(".")[2]
