"""Keeps watch over standstills beside the run: records them in the case, says so when the run goes on, ends what has to be ended."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

from trainsleuth.case.folder import Case
from trainsleuth.case.standstill import Standstill, to_fact
from trainsleuth.supervise.standstill import News, StandstillWatch, end_all

EVERY = 1.0
AFTER_A_STANDSTILL = 0.25  # seconds: that it goes on is to be seen before it ends
GRACE = 5.0  # seconds that a program has to end when it is asked to, before we ask whether it stands still


class Standing:
    """The look-out runs in a thread of its own: a close look takes seconds, and the end of the program must not wait for it."""

    def __init__(self, watch: StandstillWatch, case: Case, then: Literal["report", "kill", "wait"]) -> None:
        self._watch = watch
        self._case = case
        self._then = then
        self._news: queue.Queue[News] = queue.Queue()
        self._ring: Callable[[], None] = lambda: None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_out, name="look-out", daemon=True)
        self.unrecovered = False
        self._ending = False

    def begin(self, ring: Callable[[], None]) -> None:
        """`ring` is called when there is news."""
        self._ring = ring
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._watch.stop()
        if self.unrecovered:
            end_all(self._watch.pids, ask=False)

    def _look_out(self) -> None:
        while not self._over.wait(AFTER_A_STANDSTILL if self.unrecovered else EVERY):
            try:
                news = self._watch.news()
            except Exception as problem:  # we cannot look; the program goes on, and the case says why nobody looked
                self._write("watch_failed", {"why": f"{type(problem).__name__}: {problem}"})
                return
            if news is not None:
                self._news.put(news)
                self._ring()

    def changed(self, asked_at: float | None) -> bool:
        """Record what is new; whether there is anything. Ends the program where that is wanted or the only way."""
        new = False
        while not self._news.empty():
            news = self._news.get()
            if self._ending:  # what moves now is the end that we have brought about
                continue
            self.unrecovered = news.kind == "standstill"
            self._record(news.kind, news.standstill)
            new = True
            if self.unrecovered and self._then == "kill":
                self._end()
        if asked_at is not None and time.monotonic() - asked_at > GRACE and not self._ending and self.last_look():
            new = True
            self._end()
        return new

    def is_quiet(self) -> bool:
        """Whether nothing has moved for longer than this run has ever paused: a signal to end may wait for a last look then."""
        return not self.unrecovered and self._watch.quiet_for_long()

    def last_look(self) -> bool:
        """Before it ends, or because it was asked to end and did not: whether it stands still, which is recorded then."""
        if not self.unrecovered:
            found = self._watch.stands_now()
            if found is None:
                return False
            self.unrecovered = True
            self._record("standstill", found)
        return True

    def _end(self) -> None:
        self._ending = True
        threading.Thread(target=end_all, args=(self._watch.pids,), daemon=True).start()

    def _record(self, kind: str, standstill: Standstill) -> None:
        self._write(kind, to_fact(standstill))

    def _write(self, kind: str, content: dict[str, Any]) -> None:
        line = json.dumps({"k": kind, "t": time.time(), **content})
        with (self._case.facts / "supervisor.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")
