"""Records whether random numbers that backward cannot draw again are drawn inside a checkpointed function.

Activation checkpointing runs the function a second time in backward. Torch's own random state is put back for that; Python's and
numpy's are not, nor are those of generators that the function has of its own.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
import threading
from typing import Any, Dict, List, Optional, Set, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch

MOST_LOOKS, MOST_HOLDERS = 64, 500
DRAW_NOTHING = tuple(f"{os.sep}{name}{os.sep}" for name in ("tqdm", "torch", "tensorboard", "wandb", "rich"))


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    module = importlib.import_module("torch.utils.checkpoint")
    original = module.checkpoint  # type: ignore[attr-defined]
    aside = watch.aside
    looks = {"left": MOST_LOOKS}

    @stands_for(original)
    def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
        if aside() or not looks["left"] or not probe.on:
            return original(function, *args, **kwargs)
        before = states(function)
        result = original(function, *args, **kwargs)
        compare(before, function, kwargs)
        return result

    @probe.guard
    def states(function: Any) -> Dict[str, Any]:
        own = {id(generator): (kind, _state(generator)) for kind, generator in _generators(function)}
        numpy = sys.modules.get("numpy")
        state = numpy.random.get_state() if numpy is not None else None
        return {
            "Python": random.getstate(),
            "numpy": None if state is None else (state[1].tobytes(), state[2]),
            "torch": torch.get_rng_state().numpy().tobytes(),
            "own": own,
        }

    @probe.guard
    def compare(before: Optional[Dict[str, Any]], function: Any, options: Dict[str, Any]) -> None:
        looks["left"] -= 1
        now = states(function)
        if before is None or now is None:
            return
        drawn = [name for name in ("Python", "numpy") if before[name] != now[name]] if _nobody_else_draws() else []
        drawn += [kind for key, (kind, state) in now["own"].items() if kind not in drawn and before["own"].get(key, (kind, state)) != (kind, state)]
        if not options.get("preserve_rng_state", True) and before["torch"] != now["torch"]:
            drawn.append("torch")
        if drawn and torch.is_grad_enabled():
            at = places.of_frame(sys._getframe(2))
            watch.facts.once(
                ("checkpoint", at), "checkpoint_random", at=at, drawn=drawn, function=_where(function),
                reentrant=options.get("use_reentrant"), windows=watch.windows,
            )  # fmt: skip

    module.checkpoint = checkpoint  # type: ignore[attr-defined]


def _nobody_else_draws() -> bool:
    """Whether all other threads belong to libraries that draw nothing; a thread that prepares batches shares the random states."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame: Any = frames.get(thread.ident or 0)
        files = []
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        if thread is not threading.current_thread() and not any(part in file for file in files for part in DRAW_NOTHING):
            return False
    return True


def _generators(function: Any) -> List[Tuple[str, Any]]:
    """Generators that the function holds: attributes of its modules, what it closes over, what it names of its file."""
    found: Dict[int, Tuple[str, Any]] = {}
    queue: List[Any] = [function]
    seen: Set[int] = set()
    while queue and len(seen) < MOST_HOLDERS:
        value = queue.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        kind = _kind_of_generator(value)
        if kind:
            found[id(value)] = (kind, value)
        elif hasattr(value, "named_modules") and not isinstance(value, type):
            for module in value.modules():
                queue += [*vars(module).values(), getattr(type(module), "forward", None)]
        elif hasattr(value, "func") and hasattr(value, "keywords"):
            queue += [value.func, *value.args]
        elif hasattr(value, "__code__"):
            queue += _closed_over(value)
            queue += [value.__globals__[name] for name in value.__code__.co_names if _kind_of_generator(value.__globals__.get(name))]
        elif hasattr(value, "__func__"):
            queue += [value.__func__, *(vars(value.__self__).values() if hasattr(value.__self__, "__dict__") else ()), value.__self__]
        elif places.is_users(value) and hasattr(value, "__dict__"):
            queue += vars(value).values()
    return list(found.values())


def _closed_over(function: Any) -> List[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # a name that is not bound yet
            continue
    return found


def _kind_of_generator(value: Any) -> str:
    if isinstance(value, random.Random):
        return "Python"
    kind = type(value)
    if kind.__module__.startswith("numpy.random") and kind.__name__ in ("Generator", "RandomState"):
        return "numpy"
    return "a torch.Generator" if kind.__name__ == "Generator" and kind.__module__.startswith("torch") else ""


def _state(generator: Any) -> Any:
    if hasattr(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    state = generator.getstate() if hasattr(generator, "getstate") else generator.get_state()
    return state.numpy().tobytes() if hasattr(state, "numpy") else repr(state)


def _where(function: Any) -> Optional[Tuple[str, int, str]]:
    """Where the function, or the forward of the module, begins."""
    target = getattr(type(function), "forward", None) if hasattr(function, "forward") else function
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    return None if code is None else places.beginning_of(code)
