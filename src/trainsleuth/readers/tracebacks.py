"""Tracebacks and stacks in any text: Python's own, chained, grouped, with rank prefixes, re-raised from workers; py-spy, faulthandler,
gdb; and the lines in which NCCL, gloo, CUDA kernels and the system say that a process ends.

`Tracebacks` is fed line by line, so that the reader of a log can use it on its way. Lines of several ranks may be interleaved: each
prefix (`[rank1]: `, `1: `, `(worker pid=7) `) has its own state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainsleuth.readers.kinds import Fact, skipped

NAME = "traceback or stack dump"
BEGIN = "Traceback (most recent call last)"
MOST_FRAMES = 200
MOST_KEPT = 20  # frames in a fact, as the crash probe keeps them
LONGEST_MESSAGE = 2000
LONGEST_LINE = 1 << 16
LONGEST_TEXT = 2000  # of a line that is matched against patterns
MOST_RANKS = 4096
LOOKED_AT = 65536

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PREFIX = re.compile(r"(?:\[(?:rank|default|Rank )?(?P<rank>\d+)\]:? ?|(?P<task>\d+): +|\((?P<actor>[^()]*pid=\d+[^()]*)\) )")
_FRAME = re.compile(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+)(?:, in (?P<function>.*?)| in (?P<bare>.*?))?\s*$')
_REPEATED = re.compile(r"\s*\[Previous line repeated \d+ more times?\]")
_KIND = re.compile(
    r"(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Failure|Unsupported|Timeout|Killed|Refused)?)(?::\s?(?P<message>.*))?$"
)
_CHAINED = re.compile(r"(The above exception was the direct cause of the following exception|"
                      r"During handling of the above exception, another exception occurred):?\s*$")  # fmt: skip
_GROUP = re.compile(r"^\s*[|+] ?")
_GROUP_MARK = re.compile(r"^\s*\+-[+-]*-+ ?(\d+|\.\.\.) ?-*|^\s*\+-{4,}")
_WORKER = re.compile(r"Caught \S+ in DataLoader worker process (\d+)")
_ORIGINAL = re.compile(r"(Original Traceback|Traceback) \(most recent call last\)")
_INSTALLED = re.compile(
    r"site-packages|dist-packages|/lib(?:64)?/python3|[\\/]Lib[\\/]|^<frozen|^<string>$|^/usr/lib/python|_trainsleuth_inside"
    r"|[\\/]bin[\\/][\w-]+$"
)

# What ends a process without a Python traceback, by a line of its own.
_LAST_WORDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("NCCL watchdog", re.compile(r"Watchdog caught collective operation timeout: (?P<message>.*)")),
    ("device-side assert", re.compile(r"(?P<message>\S+:\d+: \S.*: block: \[[^\]]*\], thread: \[[^\]]*\] Assertion .*failed.*)")),
    ("C++ exception", re.compile(r"^\s*what\(\):\s+(?P<message>.*)")),
    ("bus error in a DataLoader worker", re.compile(r"(?P<message>(?:ERROR: )?Unexpected bus error encountered in worker.*)")),
    ("fatal Python error", re.compile(r"Fatal Python error: (?P<message>.*)")),
    ("killed for memory", re.compile(r"(?P<message>.*(?:Detected \d+ oom[_-]kill event|Out of memory: Killed process).*)")),
    ("signal", re.compile(r"^\s*(?P<message>(?:\S+: line \d+:\s+\d+ )?"
                          r"(?:Segmentation fault|Bus error|Killed|Aborted|Illegal instruction)(?: \(core dumped\)|\s.*)?)$")),
)  # fmt: skip
_LAST_WORD_HINT = re.compile(
    r"Watchdog caught|Assertion|what\(\):|bus error|Fatal Python|oom[_-]kill|Out of memory|Segmentation|Bus error|Killed|Aborted|Illegal"
)

_PYSPY_PROCESS = re.compile(r"Process (?P<pid>\d+): (?P<command>.*)$")
_PYSPY_THREAD = re.compile(r"Thread (?P<id>\S+) \((?P<state>[a-z+]+)\)(?:: \"(?P<name>.*)\")?\s*$")
_PYSPY_FRAME = re.compile(r"\s+(?P<function>\S.*?) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)\s*$")
_FAULT_THREAD = re.compile(
    r"(?P<current>Current thread|Thread) (?P<id>0x[0-9a-fA-F]+)(?: \[(?P<name>.*)\])? \(most recent call first\):"
)
_GDB_THREAD = re.compile(r"Thread (?P<number>\d+) \((?P<what>.*)\):\s*$")
_GDB_FRAME = re.compile(
    r"#\d+\s+(?:0x[0-9a-f]+ in )?(?P<function>.+?) \(.*?\)?(?: at (?P<file>\S+?):(?P<line>\d+)| from (?P<library>\S+))?\s*$"
)
_GDB_PYTHON = re.compile(r"#?\d*\s*.*Frame 0x[0-9a-f]+, for file (?P<file>.+?), line (?P<line>\d+), in (?P<function>\S+)")
_STACK_HINT = re.compile(r"Process \d+: |Thread |Current thread 0x|#\d+ ")


def recognises(path: Path, head: bytes) -> bool:
    """A file that begins with a traceback or a stack, or holds little else."""
    text = head[:LOOKED_AT].decode("utf-8", "replace")
    lines = [line[:LONGEST_TEXT] for line in text.splitlines()[:400] if line.strip()]
    if not lines:
        return False
    first = _PREFIX.sub("", lines[0], count=1)
    if BEGIN in first or _PYSPY_PROCESS.match(first) or _FAULT_THREAD.match(first) or _GDB_THREAD.match(first):
        return True
    frames = sum(bool(_FRAME.search(line) or _GDB_FRAME.match(line) or _PYSPY_FRAME.fullmatch(line)) for line in lines)
    return frames * 3 > len(lines) and any(BEGIN in line or _STACK_HINT.match(line) for line in lines)


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    found = Tracebacks()
    cut = first_cut = 0
    try:
        with path.open("rb") as file:
            number = 0
            while raw := file.readline(LONGEST_LINE):
                number += 1
                if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
                    cut, first_cut = cut + 1, first_cut or number
                yield from found.line(raw.decode("utf-8", "replace").rstrip("\r\n"), number)
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)
    yield from found.end()
    if cut:
        yield skipped("line of more than 64 KB, cut", cut, first_cut)


@dataclass
class _Raised:
    """One exception: what was raised, and through which frames it came, outermost first."""

    kind: str = ""
    message: list[str] = field(default_factory=list)
    frames: list[list[Any]] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    at: int = 0

    def text(self) -> str:
        """Without the rules that torchrun draws above and below its words."""
        return "\n".join(line for line in self.message if not line.strip() or set(line.strip()) - set("=-")).strip()[:LONGEST_MESSAGE]


class Tracebacks:
    """Fed with lines, gives `crash` and `stack` facts; each state machine holds one traceback and no more."""

    def __init__(self) -> None:
        self._by_prefix: dict[str, _Python] = {}
        self._stacks = _Stacks()
        self._said: set[tuple[str, str]] = set()

    @property
    def busy(self) -> bool:
        """Whether a traceback or stack has begun and not ended: the coming line may belong to it."""
        return self._stacks.open or any(state.open for state in self._by_prefix.values())

    def line(self, text: str, number: int) -> Iterator[Fact]:
        text = text[:LONGEST_TEXT]
        prefix, rank, bare = _split(_COLOUR.sub("", text) if "\x1b" in text else text)
        state = self._by_prefix.get(prefix)
        begins = BEGIN in bare
        if state is None and begins and len(self._by_prefix) < MOST_RANKS:
            state = self._by_prefix[prefix] = _Python(rank)
        if state is not None and (state.open or begins):
            taken, facts = state.line(bare, number)
            yield from facts
            if taken:
                return
        yield from self._stacks.line(bare, number)
        if _LAST_WORD_HINT.search(bare):
            yield from self._last_words(bare, number, rank)

    def _last_words(self, text: str, number: int, rank: int | None) -> Iterator[Fact]:
        for kind, pattern in _LAST_WORDS:
            match = pattern.search(text)
            if match is None:
                continue
            message = match["message"].strip()[:LONGEST_MESSAGE]
            shape = (f"{kind} {rank}", re.sub(r"\d+", "0", message)[:200])
            if shape not in self._said and len(self._said) < MOST_RANKS:
                self._said.add(shape)
                yield {"k": "crash", "kind": kind, "message": message, "frames": [], "code": [], "rank": rank, "at": number}
            return

    def end(self) -> Iterator[Fact]:
        for state in self._by_prefix.values():
            yield from state.end()
        yield from self._stacks.end()


def _split(text: str) -> tuple[str, int | None, str]:
    """The prefix that names a rank or actor, the rank, and the rest of the line."""
    if text[:1] not in "[(0123456789":
        return "", None, text
    match = _PREFIX.match(text)
    if match is None:
        return "", None, text
    number = match["rank"] or match["task"]
    rank = int(number) if number is not None and len(number) < 7 else None
    return match[0].rstrip(), rank, text[match.end() :]


class _Python:
    """The tracebacks of one rank. A chain of exceptions is one crash, told by its last, with those before it beside."""

    def __init__(self, rank: int | None) -> None:
        self._rank = rank
        self._chain: list[_Raised] = []
        self._now: _Raised | None = None
        self._indent = 0
        self._after = 0  # lines since the message began
        self._grouped = False
        self._waiting = False  # a chain or group may go on

    @property
    def open(self) -> bool:
        return self._now is not None or self._waiting

    def line(self, text: str, number: int) -> tuple[bool, list[Fact]]:
        """Whether the line was part of a traceback, and what ended with it."""
        if BEGIN in text:
            facts = [] if self._joins(text) else list(self.end())
            self._begin(text, number)
            return True, facts
        if self._grouped and _GROUP_MARK.match(text):
            return True, []
        body = self._body(text)
        if self._now is None:
            return self._between(body)
        if not self._now.kind:
            return self._within(body, number)
        return self._message(body)

    def _joins(self, text: str) -> bool:
        """Whether this beginning belongs to the traceback at hand: chained, grouped, or carried in a message."""
        if self._waiting or self._grouped or (_ORIGINAL.match(text.strip()) and text.strip().startswith("Original")):
            return True
        return self._now is not None and bool(self._now.kind) and _carries(self._now)

    def _begin(self, text: str, number: int) -> None:
        self._keep()
        before = text[: text.index(BEGIN)]
        self._grouped = (self._grouped and "|" in before) or "Exception Group" in before or "+ " in before
        self._indent = 0 if self._grouped else len(before) - len(before.lstrip()) if not before.strip() else 0
        self._now = _Raised(at=number)
        self._waiting = False

    def _body(self, text: str) -> str:
        return _GROUP.sub("", text, count=1) if self._grouped and ("|" in text[:40] or "+" in text[:40]) else text[self._indent :]

    def _within(self, body: str, number: int) -> tuple[bool, list[Fact]]:
        assert self._now is not None
        frame = _FRAME.match(body)
        if frame is not None:
            if len(self._now.frames) < MOST_FRAMES:
                function = (frame["function"] or frame["bare"] or "").strip()
                self._now.frames.append([frame["file"], int(frame["line"][:9]), function])
                self._now.code.append("")
            return True, []
        if body[:1] in (" ", "\t") or not body.strip() or _REPEATED.match(body):
            if self._now.frames and body.strip() and not self._now.code[-1] and not set(body.strip()) <= set("^~"):
                self._now.code[-1] = body.strip()[:200]
            return True, []
        match = _KIND.match(body)
        if match is None or (not self._now.frames and "Error" not in body and "Exception" not in body):
            return False, list(self.end())
        self._now.kind = match["kind"]
        self._now.message = [match["message"] or ""]
        self._after = 0
        return True, []

    def _message(self, body: str) -> tuple[bool, list[Fact]]:
        """Lines after the kind: more of the message, a link of the chain, or the end."""
        assert self._now is not None
        self._after += 1
        if _CHAINED.match(body.strip()):
            self._keep()
            self._waiting = True
            return True, []
        if self._after <= 60 and self._goes_on(body):
            self._now.message.append(body[:500])
            return True, []
        if not body.strip() and self._after <= 60:
            self._now.message.append("")
            return True, []
        return False, list(self.end())

    def _goes_on(self, body: str) -> bool:
        """Messages of several lines: indented ones, state_dict's lists, CUDA's advice, nested tracebacks' frames."""
        assert self._now is not None
        stripped = body.strip()
        if not stripped:
            return False
        return (
            body[0] in " \t"
            or _carries(self._now)
            or stripped.startswith(_MORE)
            or self._now.message[-1].rstrip().endswith(("\\", ",", ":"))
        )

    def _between(self, body: str) -> tuple[bool, list[Fact]]:
        if not body.strip() or _CHAINED.match(body.strip()):
            return True, []
        return False, list(self.end())

    def _keep(self) -> None:
        if self._now is not None and (self._now.kind or self._now.frames):
            self._chain = (self._chain + [self._now])[-8:]
        self._now = None

    def end(self) -> Iterator[Fact]:
        self._keep()
        chain, self._chain, self._waiting, self._grouped = self._chain, [], False, False
        if chain:
            yield _crash(chain, self._rank)


_MORE = (
    "CUDA kernel errors", "For debugging", "Compile with", "Device-side assertion", "Search for", "Missing key", "Unexpected key",
    "size mismatch", "This error", "In order to", "Parameter", "Please", "(1)", "(2)", "Note:", "Hint",
    "WeightsUnpickler", "Check the", "Exception raised from",
    "frame #", "making sure", "parameter indices", "torch.nn.parallel", "from user code", "Set TORCH", "You can suppress", "Original Traceback",
    "If reserved", "Including", "Explanation", "Developer debug", "For more details", "-- Process", "====", "----", "Root Cause", "[0]:",
)  # fmt: skip


def _carries(raised: _Raised) -> bool:
    """Whether a traceback of another process stands inside the message."""
    return any(
        ("Caught " in line and " in " in line) or "-- Process" in line or line.strip() == '"""' for line in raised.message[:6]
    )


def _crash(chain: list[_Raised], rank: int | None) -> Fact:
    last = chain[-1]
    worker = next((int(match[1]) for raised in chain if (match := _WORKER.search(raised.text()))), None)
    source = (
        last
        if any(map(_is_users, last.frames))
        else next((one for one in reversed(chain) if any(map(_is_users, one.frames))), last)
    )
    rows = [(frame, code) for frame, code in zip(source.frames, source.code) if _is_users(frame)] or list(
        zip(source.frames, source.code)
    )
    fact: Fact = {
        "k": "crash", "kind": last.kind.rpartition(".")[2] or "Exception", "message": last.text(),
        "frames": [frame for frame, _ in rows[-MOST_KEPT:]], "code": [code for _, code in rows[-MOST_KEPT:]],
        "rank": rank, "at": chain[0].at, "raised_in": last.frames[-1] if last.frames else None,
    }  # fmt: skip
    if worker is not None:
        fact["worker"] = worker
    if len(chain) > 1:
        fact["before"] = [
            {"kind": one.kind.rpartition(".")[2], "message": one.text(), "frames": one.frames[-3:]} for one in chain[:-1]
        ]
    if not last.kind:
        fact["kind"], fact["message"] = "unfinished traceback", "the text ends before the exception is named"
    return fact


def _is_users(frame: list[Any]) -> bool:
    return _INSTALLED.search(frame[0]) is None


class _Stacks:
    """Dumps of what threads were doing. Innermost frame first, as these tools print them and as standstills store them."""

    def __init__(self) -> None:
        self._process = ""
        self._threads: list[dict[str, Any]] = []
        self._frames = 0
        self._style = ""

    @property
    def open(self) -> bool:
        return bool(self._threads)

    def line(self, text: str, number: int) -> Iterator[Fact]:
        if not self._threads and not _STACK_HINT.match(text):
            return
        process = _PYSPY_PROCESS.match(text)
        if process is not None:
            yield from self.end()
            self._process = f"{process['pid']}: {process['command']}"[:300]
            return
        if self._begins_thread(text):
            return
        if self._threads and not self._frame(text) and text.strip() and not text.startswith(("Python v", "  ", "\t", "[")):
            yield from self.end()

    def _begins_thread(self, text: str) -> bool:
        for style, pattern in (("py-spy", _PYSPY_THREAD), ("faulthandler", _FAULT_THREAD), ("gdb", _GDB_THREAD)):
            match = pattern.match(text)
            if match is None:
                continue
            groups = match.groupdict()
            name = (
                groups.get("name")
                or groups.get("what")
                or ("current thread" if groups.get("current") == "Current thread" else "")
            )
            if len(self._threads) < 1000:
                self._threads.append({"name": name or str(groups.get("id")), "frames": [], "state": groups.get("state") or ""})
            self._style = style
            return True
        if not self._threads and _GDB_FRAME.match(text) and text.startswith("#0"):
            self._threads.append({"name": "main", "frames": [], "state": ""})
            self._style = "gdb"
            return self._frame(text)
        return False

    def _frame(self, text: str) -> bool:
        frame = self._parsed(text)
        if frame is None:
            return False
        frames = self._threads[-1]["frames"]
        if len(frames) < MOST_FRAMES:
            frames.append(frame)
        return True

    def _parsed(self, text: str) -> list[Any] | None:
        if self._style == "gdb":
            python = _GDB_PYTHON.match(text)
            if python is not None:
                return [python["file"], int(python["line"][:9]), python["function"]]
            match = _GDB_FRAME.match(text)
            return (
                None
                if match is None
                else [match["file"] or match["library"] or "?", int((match["line"] or "0")[:9]), match["function"]]
            )
        match = _FRAME.match(text) if self._style == "faulthandler" else _PYSPY_FRAME.match(text)
        if match is None:
            return None
        groups = match.groupdict()
        return [match["file"], int((match["line"] or "0")[:9]), (groups.get("function") or groups.get("bare") or "").strip()]

    def end(self) -> Iterator[Fact]:
        threads = [thread for thread in self._threads if thread["frames"]]
        if threads:
            yield {"k": "stack", "process": self._process, "threads": threads, "from": self._style}
        self._threads, self._process = [], ""
