"""What a rule is, and what it can say: a symptom, a cause, that facts are missing, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Place
from trainsleuth.case.record_chart import RecordChart, SourceRecord
from trainsleuth.case.run_chart import RunChart

Severity = Literal["critical", "warning", "note"]
Status = Literal["suspected", "confirmed", "refuted", "workaround", "inconclusive"]
EXAMINED = (
    "nan/", "autograd/modified-in-place", "autograd/step-between-backwards", "autograd/graph-freed",
)  # rules that need an examination: a trial has none, and shows their mechanism by breaking
STANDSTILLS = ("hang/backward", "hang/standstill")
ORDER: dict[str, int] = {"critical": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Spot:
    """A line that a finding points at, and why."""

    at: Place
    note: str = ""
    code: str | None = None  # the line itself, where it is not to be read from the source
    function: bool = False  # a function that begins there: its `def` is meant, not a decorator above it
    returned: int | None = None  # of the function that stands there: the line that computes this element of what it returns


@dataclass(frozen=True)
class Seen:
    """What a rule has seen, symptom or cause alike."""

    title: str
    where: Sequence[Spot | Place | None] = ()
    evidence: Sequence[str] = ()
    severity: Severity = "critical"
    statement: str = ""  # the cause in one sentence; the title if empty
    advice: Sequence[str] = ()
    step: int | None = None
    certain: bool = True  # False: watching alone cannot settle it
    rank: int | None = None
    look_for: str = ""  # what to look for in the source near the places, to name the line more closely
    settle: str = ""  # what would settle it, where these facts cannot


@dataclass(frozen=True)
class Missing:
    """The rule abstains; these facts would have been needed."""

    what: str


Verdict = Seen | Missing | None
Judge = Callable[[ProcessChart], Verdict]
RunJudge = Callable[[RunChart], Verdict]
RecordJudge = Callable[[SourceRecord], Verdict]
RecordsJudge = Callable[[RecordChart], Verdict]


@dataclass(frozen=True)
class Rule:
    name: str
    kind: Literal["symptom", "cause"]
    judge: Judge | RunJudge | RecordJudge | RecordsJudge
    page: str
    structural: bool
    of_run: bool  # judges the whole run, all its processes, instead of one process
    explains: tuple[str, ...] = ()
    settled_by: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()  # causes that say nothing new once this one holds
    last_resort: bool = False  # only heard when no other cause explains the symptom
    of_record: bool = False  # judges what a run left behind
    of_all: bool = False  # … all sources together


def symptom_rule(name: str, *, structural: bool = False) -> Callable[[Judge], Rule]:
    def make(judge: Judge) -> Rule:
        return Rule(name, "symptom", judge, _page(judge), structural, False)

    return make


def run_rule(
    name: str, kind: Literal["symptom", "cause"] = "cause", *, explains: tuple[str, ...] = STANDSTILLS,
    settled_by: tuple[str, ...] = (), masks: tuple[str, ...] = (), last_resort: bool = False,
) -> Callable[[RunJudge], Rule]:  # fmt: skip
    """A rule about all processes of a run together: standstills, ranks."""

    def make(judge: RunJudge) -> Rule:
        return Rule(name, kind, judge, _page(judge), True, True, () if kind == "symptom" else explains, settled_by, masks, last_resort)

    return make


def cause_rule(
    name: str, *, explains: tuple[str, ...] = (), settled_by: tuple[str, ...] = (), masks: tuple[str, ...] = (),
    structural: bool = True, last_resort: bool = False,
) -> Callable[[Judge], Rule]:  # fmt: skip
    def make(judge: Judge) -> Rule:
        return Rule(name, "cause", judge, _page(judge), structural, False, explains, settled_by, masks, last_resort)

    return make


def record_rule(
    name: str, kind: Literal["symptom", "cause"] = "symptom", *, explains: tuple[str, ...] = (), masks: tuple[str, ...] = (),
    structural: bool = False,
) -> Callable[[RecordJudge], Rule]:  # fmt: skip
    """A rule on thin evidence: one source that a run left behind. Where a live rule has the same name, both share its page."""

    def make(judge: RecordJudge) -> Rule:
        return Rule(name, kind, judge, _page(judge), structural, False, explains, (), masks, of_record=True)

    return make


def records_rule(
    name: str, kind: Literal["symptom", "cause"] = "cause", *, explains: tuple[str, ...] = (), masks: tuple[str, ...] = ()
) -> Callable[[RecordsJudge], Rule]:
    """A rule that holds several sources beside each other. Where a live rule has the same name, both share its page."""

    def make(judge: RecordsJudge) -> Rule:
        return Rule(name, kind, judge, _page(judge), False, False, explains, (), masks, of_record=True, of_all=True)

    return make


def _page(judge: Judge | RunJudge | RecordJudge | RecordsJudge) -> str:
    import sys

    return (sys.modules[judge.__module__].__doc__ or "").strip()


@dataclass
class Where:
    """A place of a finding as the user reads it."""

    file: str
    line: int
    code: str = ""
    note: str = ""
    around: list[tuple[int, str]] = field(default_factory=list)  # the line with its neighbours, where they help to read it


@dataclass
class Cause:
    rule: str
    statement: str
    status: Status = "suspected"
    trials: list[str] = field(default_factory=list)
    settled_by: list[str] = field(default_factory=list)


@dataclass
class Remedy:
    kind: Literal["patch", "env", "config", "advice"]
    summary: str
    diff: str = ""
    verified: bool = False


@dataclass
class Finding:
    id: str
    rule: str
    severity: Severity
    title: str
    step: int | None = None
    rank: int | None = None
    symptoms: list[str] = field(default_factory=list)
    symptom_texts: list[str] = field(default_factory=list)
    where: list[Where] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)
    certain: bool = True
    structural: bool = True
    about_standstill: bool = False
    settle: str = ""


@dataclass(frozen=True)
class Abstention:
    rule: str
    missing: str
