"""The table of trials in a report: the finding's own proof first and whole, and nothing that other experiments have shown is lost."""

from __future__ import annotations

from typing import Any

from trainsleuth.report.proof import add_isolated, add_verdict
from trainsleuth.trials.isolate import Isolated, Row
from trainsleuth.trials.trial import Known, Outcome, Role
from trainsleuth.trials.verdict import Verdict

RULE = "hang/openmp-thread-limit"


def trial(number: int, role: Role, label: str) -> Known:
    return Known(f"T{number}", role, label, label, Outcome("hang", "", None, {}, 0, 1.0, True, ()))


CONTROL, SEED = trial(1, "control", "control"), trial(2, "placebo", "other seed")
SUSPICION = Verdict("knob/inplace-off", "refuted", "it stands still as before", (CONTROL, trial(3, "knob", "not in place"), SEED))
PROOF = Verdict(RULE, "confirmed", "it goes on", (CONTROL, trial(4, "knob", "no OpenMP limit"), SEED))


def report(severity: str = "critical") -> dict[str, Any]:
    cause = {"rule": RULE, "statement": "", "status": "suspected", "trials": []}
    finding = {"id": "F1", "rule": RULE, "severity": severity, "causes": [cause], "remedies": []}
    return {"verdict": "healthy" if severity == "note" else "sick", "findings": [finding], "trials": []}


def labels(known: dict[str, Any]) -> list[str]:
    return [row.get("label") or f"{row['cause']} {row['verdict']}" for row in known["trials"]]


def test_the_proof_of_the_finding_comes_before_a_suspicion_that_was_tried_first() -> None:
    known = report()
    add_verdict(known, "F1", SUSPICION)
    assert labels(known) == ["control", "not in place", "other seed", "knob/inplace-off refuted"]
    add_verdict(known, "F1", PROOF)
    assert labels(known) == [
        "control", "no OpenMP limit", "other seed", f"{RULE} confirmed", "not in place", "knob/inplace-off refuted",
    ]  # fmt: skip
    assert [cause["status"] for cause in known["findings"][0]["causes"]] == ["confirmed", "refuted"]


def test_an_isolation_stays_when_the_finding_is_proved_afterwards() -> None:
    known = report()
    add_isolated(known, Isolated("F1", (Row("cnn alone", "hang", 3.0, 1),), "cnn alone is enough"))
    add_verdict(known, "F1", PROOF)
    add_verdict(known, "F1", PROOF)
    assert labels(known) == ["control", "no OpenMP limit", "other seed", f"{RULE} confirmed", "cnn alone", "conclusion"]


def test_a_note_that_trials_have_confirmed_is_a_finding() -> None:
    known = report("note")
    add_verdict(known, "F1", SUSPICION)
    assert (known["verdict"], known["findings"][0]["severity"]) == ("healthy", "note")
    add_verdict(known, "F1", PROOF)
    assert (known["verdict"], known["findings"][0]["severity"]) == ("sick", "warning")
