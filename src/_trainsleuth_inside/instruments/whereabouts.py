"""Where an operation stands: the user's line, the module, and in a backward pass those of the forward that it belongs to."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from _trainsleuth_inside import places
from _trainsleuth_inside.places import USER, Place, kind_of

MOST_NODES = 200_000


class Whereabouts(NamedTuple):
    phase: str  # forward, backward or step
    at: Optional[Place]
    module: str
    module_kind: str
    node: str  # the name of the autograd node, in backward
    above: List[Place]  # the user's lines that called `at`, innermost first
    number: Optional[int] = None  # of the autograd node, in backward
    era: int = 0  # so many backwards had begun


class Surveyor:
    """Remembers for each forward operation where it stood, by the number that its autograd node gets."""

    def __init__(self, watch: Any) -> None:
        self._watch = watch
        self._torch = watch.torch
        self._following = getattr(self._torch.autograd, "_get_sequence_nr", None)
        self.era = 0
        self._forward: Dict[int, Whereabouts] = {}
        self._names: Dict[int, str] = {}

    def here(self) -> Whereabouts:
        """Of the operation that is being run now."""
        node = self._torch._C._current_autograd_node()
        frame = sys._getframe(1)
        if node is None:
            found = self._survey(frame)
            if self._following is not None and len(self._forward) < MOST_NODES:
                self._forward.setdefault(self._following() - 1, found)
            return found
        known = self._forward.get(node._sequence_nr()) if hasattr(node, "_sequence_nr") else None
        inside = self._in_own_backward(frame) if _written_in_python(node) else None
        if inside is not None:
            found = known or self._survey(frame)
            return found._replace(phase="backward", at=inside, node=node.name(), number=node._sequence_nr())
        if known is not None:
            return known._replace(phase="backward", node=node.name(), number=node._sequence_nr())
        return self._survey(frame)._replace(phase="backward", node=node.name(), module="", module_kind="")

    def at_save(self) -> Whereabouts:
        """Of the operation that autograd saves a tensor for."""
        return self._survey(sys._getframe(1))

    def of_node(self, node: Any) -> Optional[Whereabouts]:
        """Where the forward operation of an autograd node stood, if it ran under our eyes."""
        return self._forward.get(node._sequence_nr()) if hasattr(node, "_sequence_nr") else None

    def _survey(self, frame: Any) -> Whereabouts:
        lines: List[Place] = []
        module: Any = None
        in_step = False
        while frame is not None:
            code = frame.f_code
            if kind_of(code.co_filename) == USER and len(lines) < 4:
                lines.append(places.place_of(frame))
            elif not lines and code.co_name == "step" and isinstance(frame.f_locals.get("self"), self._torch.optim.Optimizer):
                in_step = True  # the optimizer's own work, not a closure that it calls
            if module is None and code.co_name == "forward":
                owner = frame.f_locals.get("self")
                module = owner if isinstance(owner, self._torch.nn.Module) else None
            frame = frame.f_back
        path = "" if module is None else self._path(module)
        kind = "" if module is None else type(module).__name__
        return Whereabouts(
            "step" if in_step else "forward", lines[0] if lines else None, path, kind, "", lines[1:], None, self.era
        )

    def _in_own_backward(self, frame: Any) -> Optional[Place]:
        """The user's line inside a backward that the user wrote: below the frame that called backward there is none."""
        while frame is not None:
            code = frame.f_code
            if kind_of(code.co_filename) == USER:
                return places.place_of(frame)
            if code.co_name == "_engine_run_backward":
                return None
            frame = frame.f_back
        return None

    def _path(self, module: Any) -> str:
        known = self._names.get(id(module))
        if known is None:
            for record in list(self._watch.models.values()):
                root = record.module()
                if root is not None:
                    for name, child in root.named_modules():
                        self._names.setdefault(id(child), name)
            running = self._watch.running
            if running is not None:
                for name, child in running.named_modules():
                    self._names.setdefault(id(child), name)
            known = self._names.get(id(module), "")
        return known


def _written_in_python(node: Any) -> bool:
    return hasattr(type(node), "_forward_cls")


def dispatching(run: Callable[[Any, Any, Any], Any]) -> Any:
    """A mode in which every operation goes through `run(function, args, kwargs)`."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return run(function, args, kwargs or {})

    return Mode()
