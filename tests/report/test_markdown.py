"""The bug report holds what a person would write, and --redact takes out what should not leave the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainsleuth.case.folder import Case
from trainsleuth.report.markdown import as_markdown
from trainsleuth.report.redact import redacted

SECTIONS = [
    "Executive summary",
    "Problem",
    "Evidence",
    "Root cause",
    "Fix (verified)",
    "Verification",
    "Follow-up",
    "Environment",
]
ABOUT = {
    "command": ["python", "/home/marie/ocr/train.py", "--lr", "1"], "cwd": "/home/marie/ocr", "started": 1_700_000_000, "python": "3.11.7",
    "torch": "2.13.0", "platform": "Linux", "git": None, "trainsleuth": "0.1.0",
}  # fmt: skip


def finding(**changes: Any) -> dict[str, Any]:
    return {
        "id": "F1", "rule": "stall/params-not-in-optimizer", "severity": "critical",
        "title": "4 parameters get gradients, and no optimizer holds them",
        "step": 3, "rank": None, "certain": True, "symptoms": ["stall/flat-loss"], "symptom_texts": ["loss flat at 2.4849"],
        "where": [{"file": "train.py", "line": 41, "code": "optimizer = SGD(a | b)", "note": "built too early"}],
        "evidence": ["fc.weight: gradient in 120 of 120 windows, moved by 0"],
        "causes": [{"rule": "stall/params-not-in-optimizer", "statement": "the optimizer was built before the head was replaced",
                    "status": "confirmed", "trials": ["T1", "T2", "T3"], "settled_by": ["optimizer-owns-all"]}],
        "remedies": [{"kind": "patch", "summary": "Move line 41 below line 44.", "diff": "--- a\n+++ b\n-x\n+y\n", "verified": True}],
        **changes,
    }  # fmt: skip


def report(*findings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "schema": 1, "case": "20231114-train", "exit": {"kind": "ok", "code": 0}, "verdict": "sick" if findings else "healthy",
        "why_unsure": "", "findings": list(findings), "abstained": [{"rule": "data/leak", "missing": "a validation set"}],
        "trials": [{"finding": "F1", "role": "control", "line": "control   loss 2.48 → 2.48"},
                   {"finding": "F1", "role": "remedy", "line": "patched   loss 2.48 → 0.31"}],
        **changes,
    }  # fmt: skip


CASE = Case(Path("/home/marie/ocr/.trainsleuth/cases/20231114-train"), ABOUT)


def test_front_matter_is_yaml_and_all_sections_are_there() -> None:
    text = as_markdown(CASE, report(finding()))
    _, front, body = text.split("---\n", 2)
    about = yaml.safe_load(front)
    assert set(about) == {"title", "date", "type", "category", "status", "version", "tags"}
    assert about["status"] == "fix verified"
    assert "stall/params-not-in-optimizer" in about["tags"]
    assert front.endswith("\n\n"), "else GitHub takes the front matter for a headline"
    assert [line[3:] for line in body.splitlines() if line.startswith("## ")] == SECTIONS
    assert "**Confirmed** by experiment. 3 trials" in body
    assert "```diff\n--- a\n+++ b\n-x\n+y\n```" in body
    assert body.index("control   loss") < body.index("Fix (verified)") < body.index("patched   loss")
    assert "`optimizer = SGD(a \\| b)`" in body


def test_a_suspicion_says_that_it_is_one_and_what_would_settle_it() -> None:
    cause = {"rule": "x/y", "statement": "labels are shifted", "status": "suspected", "trials": [], "settled_by": []}
    text = as_markdown(CASE, report(finding(certain=False, causes=[cause], remedies=[], settle="print the labels"), trials=[]))
    assert "Proof status: **suspected**. What would settle it: print the labels." in text
    assert "- [ ] F1: settle the cause" in text
    assert 'status: "open"' in text


def test_several_findings_are_issues_of_one_report() -> None:
    text = as_markdown(CASE, report(finding(), finding(id="F2", title="the learning rate is zero")))
    assert "## Issue 1: 4 parameters" in text
    assert "## Issue 2: The learning rate is zero" in text


def test_a_log_that_was_diagnosed_has_no_command() -> None:
    source = {"path": "/data/logs/train.log", "format": "text log", "points": 120, "runs": 1, "names": 3, "skipped": []}
    text = as_markdown(Case(Path("train.log"), {"cwd": "/data"}), report(finding(), sources=[source], exit={"kind": "unknown"}))
    assert "made from what the run left behind: `train.log` (text log)" in text


def test_a_healthy_run_says_so() -> None:
    text = as_markdown(CASE, report())
    assert "Nothing was found that is wrong with it." in text
    assert 'status: "no fault found"' in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("File /home/marie/ocr/train.py:41", "File ./train.py:41"),
        ("/data/secret-project/sets/a.csv", "…/a.csv"),
        ("/home/marie/env/lib/python3.11/site-packages/torch/nn/linear.py", "…/site-packages/torch/nn/linear.py"),
        (r"C:\Users\marie\ocr\train.py", "…/train.py"),
        ("ask marie or marie.c@example.org", "ask <user> or <e-mail>"),
        ("on gpu-node-17 and gpu-node-17.cluster", "on <host> and <host>.cluster"),
        ("events.out.tfevents.1700000000.gpu-node-17.123.0", "events.out.tfevents.1700000000.<host>.123.0"),
        ("tcp://10.0.0.7:29500 and 192.168.1.4", "tcp://<address>:29500 and <address>"),
        ("see https://pytorch.org/docs/stable", "see https://pytorch.org/docs/stable"),
        ("https://me:pw@git.example.org/x", "https://<address>/x"),
        ("WANDB_API_KEY=0123456789abcdef", "WANDB_API_KEY=***"),
        ("key hf_abcdefghijklmnopqrst here", "key *** here"),
        ("the root cause: loss 0.5/1.0, 3/4 of train/loss", "the root cause: loss 0.5/1.0, 3/4 of train/loss"),
    ],
)
def test_redaction(text: str, expected: str) -> None:
    assert redacted(text, Path("/home/marie/ocr"), user="marie", host="gpu-node-17") == expected


def test_a_redacted_report_names_nobody() -> None:
    text = as_markdown(CASE, report(finding()), redact=True)
    assert "marie" not in text
    assert "train.py:41" in text
