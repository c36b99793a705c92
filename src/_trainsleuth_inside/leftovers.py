"""Which parameters still have the gradient of the last step when the next one uses it: nobody clears them, while others are cleared.

One parameter stands for its whole optimizer elsewhere (see windows.py); here each is looked at, in windows whose numbers are taken.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List, Tuple

from _trainsleuth_inside.aside import readable

Entry = Tuple[Any, int, int]  # a reference to the parameter, where its gradient lies, and its version


class Leftovers:
    def __init__(self, number: Callable[[Any], int]) -> None:
        self._number = number
        self._by_the_step: List[Entry] = []  # as the last step left them
        self._there: List[Entry] = []  # still so when a backward began
        self._looked = False
        self.looks = 0
        self.windows: Dict[int, int] = {}  # by parameter: in how many of these looks it was so

    def begin(self, optimizer: Any) -> None:
        """The step is over: how are the gradients that it has used?"""
        self._by_the_step = [
            (weakref.ref(parameter), grad.data_ptr(), grad._version)
            for group in optimizer.param_groups
            for parameter in group["params"]
            if (grad := parameter.grad) is not None and not grad.is_sparse and readable(grad)
        ]
        self._there, self._looked = [], False

    def before_backward(self) -> None:
        if self._by_the_step:
            self._there = [entry for entry in self._by_the_step if self._kept(entry)]
            self._by_the_step, self._looked = [], True
        elif self._there:
            self.prune()

    def prune(self) -> None:
        self._there = [entry for entry in self._there if self._kept(entry, accumulated=True)]

    def cleared(self) -> None:
        """By the optimizer itself, all of them."""
        self._there = []
        self._looked = self._looked or bool(self._by_the_step)
        self._by_the_step = []

    def end(self) -> None:
        """A step has used the gradients."""
        if not self._looked:
            return
        self.looks += 1
        for reference, place, _ in self._there:
            parameter = reference()
            grad = None if parameter is None else parameter.grad
            if grad is not None and grad.data_ptr() == place:
                number = self._number(parameter)
                self.windows[number] = self.windows.get(number, 0) + 1
        self._there, self._looked = [], False

    def drop(self) -> None:
        """Nobody has looked for a while: what was known is out of date."""
        self._by_the_step, self._there, self._looked = [], [], False

    def take(self) -> Tuple[int, List[List[int]]]:
        taken = self.looks, [[number, count] for number, count in self.windows.items()]
        self.looks, self.windows = 0, {}
        return taken

    @staticmethod
    def _kept(entry: Entry, accumulated: bool = False) -> bool:
        reference, place, version = entry
        parameter = reference()
        grad = None if parameter is None else parameter.grad
        if grad is None or grad.data_ptr() != place or (grad._version != version and not accumulated):
            return False
        return grad.device.type == "cpu" and bool(grad.detach().any())
