"""Arms an instrument near the window in question, writes down what it found, and ends the trial: there is nothing more to learn."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any, Dict, List, Optional, Tuple

from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.instruments import sinks
from _trainsleuth_inside.instruments.first_bad import FirstBad
from _trainsleuth_inside.instruments.numbers import CLEAN, state
from _trainsleuth_inside.probes import crash


def begin(watch: Any, what: str, first: int, last: int) -> None:
    probe = Probe("examination", watch.facts)
    _arm_in_time(watch, probe, _instrument(what)(watch, probe), first, last)


def _instrument(what: str) -> Any:
    if what == "mutations":
        from _trainsleuth_inside.instruments.mutations import MutationExamination

        return MutationExamination
    if what == "functions":
        from _trainsleuth_inside.instruments.functions import FunctionExamination

        return FunctionExamination
    return partial(BadNumberExamination, scaled_too=what == "bad-gradient")


def _arm_in_time(watch: Any, probe: Probe, examination: Any, first: int, last: int) -> None:
    """Before window `first`; the trial ends after window `last` whatever was found."""

    def closed(_: Any) -> None:
        if watch.windows + 1 >= first:
            examination.arm()
        if watch.windows > last:
            leave(watch, "nothing")

    watch.when_window_closes.append(probe.guard(closed))
    if first <= 1:
        probe.guard(examination.arm)()


def leave(watch: Any, result: str, **fact: Any) -> None:
    """Write the result and end the process, before the program can do more."""
    watch.facts.write("examined", result=result, windows=watch.windows, backwards=watch.backwards, **fact)
    watch.end()
    watch.facts.write("stop", windows=watch.windows, backwards=watch.backwards)
    os._exit(0)


class BadNumberExamination:
    """Watches every operation until a loss or a gradient is bad, and names the origin."""

    def __init__(self, watch: Any, probe: Probe, scaled_too: bool = False) -> None:
        """`scaled_too`: the scale is known not to be the reason, so gradients of a scaled loss count as well."""
        self._watch, self._scaled_too = watch, scaled_too
        self._book = FirstBad(watch)
        self._armed = False
        self._armed_at = 0.0
        watch.when_backward_ended.append(probe.guard(self._after_backward))
        sinks.watch_for_the_end(probe.guard(self._at_the_end))
        self._datasets: Dict[Any, Any] = {}
        _follow_batches(watch, probe, self._book, self._datasets)

    def arm(self) -> None:
        if not self._armed and not self._watch.compiled and self._watch.torch._C._len_torch_dispatch_stack() == 0:
            self._armed, self._armed_at = True, time.time()
            self._book.mode.__enter__()

    def _after_backward(self, loss: Any) -> None:
        if not self._armed:
            return
        self._book.paused = True
        try:
            if loss is not None and state(self._watch.torch, loss) != CLEAN:
                self._tell("loss", loss)
            elif self._watch.scaled is None or self._scaled_too:
                gradient = sinks.bad_gradient(self._watch)
                if gradient is not None:
                    self._tell("gradient", gradient, root=loss)
        finally:
            self._book.paused = False

    def _at_the_end(self, frames: List[Any]) -> None:
        """The program stops by itself: perhaps because it saw the bad number first."""
        if not self._armed:
            return
        self._book.paused = True
        named: List[str] = []
        for name, found in crash.bad_values(frames):
            named.append(name)
            if not isinstance(found, float):
                self._tell("value", found, name=name)
        newest = self._book.newest()
        if named and newest is not None:
            self._tell("value", newest, name=named[0])

    def _tell(self, sink: str, tensor: Any, root: Any = None, **more: Any) -> None:
        origin: Optional[Dict[str, Any]] = self._book.blame(tensor)
        if origin is not None and origin["op"] == "given":
            self._read_again(origin["role"])
        if origin is not None and root is not None:
            more["used_by"] = sinks.used_by(root.grad_fn, origin.pop("number", None))
        if origin is None:
            leave(self._watch, "no origin", what="bad-number", sink=sink, **more)
        leave(
            self._watch, "origin", what="bad-number", sink=sink, origin=origin, seconds=round(time.time() - self._armed_at, 3),
            operations=self._book.operations, **more,
        )  # fmt: skip

    def _read_again(self, role: Dict[str, Any]) -> None:
        """A worker made the bad sample: make it once more here, under our eyes."""
        dataset, samples = self._datasets.get(role.get("dataset")), role.get("indices")
        if dataset is None or not samples or role.get("made"):
            return
        self._book.paused = False
        try:
            sample = dataset[samples[0][0]]
        except Exception:  # what a data set does outside of its loader is its own affair
            return
        finally:
            self._book.paused = True
        for _, tensor in sinks.leaves(self._watch.torch, sample):
            made = self._book.blame(tensor)
            if made is not None and made["op"] != "given":
                role["made"] = {key: made[key] for key in ("op", "bad", "at", "inputs")}
                return


def _follow_batches(watch: Any, probe: Probe, book: FirstBad, datasets: Dict[Any, Any]) -> None:
    """Know which sample of the data set each row of a batch is."""
    torch = watch.torch
    base = torch.utils.data.dataloader._BaseDataLoaderIter
    next_index, following = base._next_index, base.__next__

    def _next_index(self: Any) -> Any:
        index = next_index(self)
        remembered(self, index)
        return index

    @probe.guard
    def remembered(iterator: Any, index: Any) -> None:
        iterator.__dict__.setdefault("_trainsleuth_asked", []).append(index)

    def __next__(self: Any) -> Any:
        batch = following(self)
        arrived(self, batch)
        return batch

    @probe.guard
    def arrived(iterator: Any, batch: Any) -> None:
        asked = iterator.__dict__.get("_trainsleuth_asked") or [None]
        indices = asked.pop(0)
        paused, book.paused = book.paused, True
        try:
            dataset = getattr(iterator, "_dataset", None)
            datasets[type(dataset).__name__] = dataset
            samples = list(indices) if isinstance(indices, (list, tuple)) else None
            about = {"dataset": type(dataset).__name__, "read_at": _reader_of(dataset)}
            if samples is not None:
                files = [sinks.file_of(dataset, index) for index in samples]
                samples = [[_plain(index), file] for index, file in zip(samples, files)]
            book.batch_arrived(list(sinks.leaves(torch, batch)), about, samples)
        finally:
            book.paused = paused

    base._next_index, base.__next__ = _next_index, __next__


def _plain(index: Any) -> Any:
    try:
        return int(index)
    except (TypeError, ValueError):
        return str(index)


def _reader_of(dataset: Any) -> Optional[Tuple[str, int, str]]:
    """The line where the data set's own `__getitem__` begins; of the innermost one, where data sets wrap each other."""
    from _trainsleuth_inside.places import USER, beginning_of, kind_of

    for _ in range(4):
        code = getattr(getattr(type(dataset), "__getitem__", None), "__code__", None)
        if code is not None and kind_of(code.co_filename) == USER:
            return beginning_of(code)
        dataset = getattr(dataset, "dataset", None)
    return None
