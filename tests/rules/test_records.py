"""Rules on thin evidence: silent on healthy logs of many kinds, and right on sick ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainsleuth.postmortem import examine
from trainsleuth.rules.catalogue import all_rules, record_rules
from trainsleuth.rules.kinds import Finding

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
HEALTHY = sorted((CORPUS / "healthy").iterdir())
SICK = sorted((CORPUS / "sick").iterdir())


def findings(content: str | Path, tmp_path: Path) -> list[Finding]:
    if isinstance(content, str):
        path = tmp_path / "train.log"
        path.write_text(content, encoding="utf-8")
        content = path
    return examine([str(content)]).diagnosis.findings


@pytest.mark.parametrize("log", HEALTHY, ids=lambda path: path.stem)
def test_nothing_is_said_of_a_healthy_log(log: Path) -> None:
    assert [finding.rule for finding in examine([str(log)]).diagnosis.findings] == []


def test_there_are_healthy_logs_of_many_kinds() -> None:
    assert len(HEALTHY) >= 25


@pytest.mark.parametrize("log", SICK, ids=lambda path: path.stem)
def test_a_sick_log_is_diagnosed_by_its_rule_alone(log: Path) -> None:
    found = examine([str(log)]).diagnosis.findings
    assert [finding.rule.replace("/", "-") for finding in found] == [log.stem]
    assert found[0].severity != "note"
    assert found[0].evidence


def test_each_rule_on_records_alone_has_its_sick_log() -> None:
    alone = {rule.name for rule in record_rules()} & {rule.name for rule in all_rules() if rule.of_record}
    assert alone <= {log.stem.replace("-", "/", 1) for log in SICK}


def test_a_finding_quotes_the_lines_of_the_log() -> None:
    (found,) = examine([str(CORPUS / "sick" / "nan-loss-not-finite.log")]).diagnosis.findings
    assert [(where.line, "nan" in where.code) for where in found.where] == [(37, False), (38, True)]
    assert any("grad_norm rose before it" in line for line in found.evidence)


def test_since_when_a_divergence_could_be_seen(tmp_path: Path) -> None:
    (found,) = examine([str(CORPUS / "sick" / "nan-diverged.log")]).diagnosis.findings
    assert 400 <= (found.step or 0) <= 440


def test_a_number_of_classes_in_the_log_decides_what_the_flat_loss_means(tmp_path: Path) -> None:
    flat = "".join(f"step {i * 10} loss 2.3026\n" for i in range(20))
    (found,) = findings("num_classes: 10\n" + flat, tmp_path)
    assert found.title == "loss fixed at 2.3026 = ln 10: 10 equally likely classes"


def test_two_digits_are_too_few_to_call_a_loss_flat(tmp_path: Path) -> None:
    assert findings("".join(f"step {i * 10} loss 0.31\n" for i in range(200)), tmp_path) == []


def test_a_learning_rate_that_is_printed_as_zero_may_be_small(tmp_path: Path) -> None:
    assert findings("".join(f"step {i} loss {2 - i / 50:.4f} lr 0.0000\n" for i in range(60)), tmp_path) == []


def test_a_loss_that_was_nan_once_and_recovered_is_a_note(tmp_path: Path) -> None:
    rows = [f"step {i} loss {'nan' if i == 20 else f'{2 - i / 50:.4f}'}\n" for i in range(60)]
    (found,) = findings("".join(rows), tmp_path)
    assert (found.rule, found.severity) == ("nan/loss-not-finite", "note")


def test_counts_of_good_news_are_no_empty_data_set(tmp_path: Path) -> None:
    text = "skipped 0 images\n0 corrupt files\nremoved 0 samples\nloaded 128 images, 0 duplicates\n"
    assert findings(text + "".join(f"step {i} loss {2 - i / 50:.4f}\n" for i in range(20)), tmp_path) == []


def test_an_empty_split_beside_full_ones_is_a_note(tmp_path: Path) -> None:
    (found,) = findings("Found 5000 train images, 0 test images\n", tmp_path)
    assert (found.rule, found.severity) == ("data/empty-dataset", "note")


def test_a_cache_that_fills_later_is_not_empty(tmp_path: Path) -> None:
    assert findings("cache: 0 entries\ncache: 512 entries\n", tmp_path) == []


def test_two_logs_in_two_precisions_are_held_beside_each_other(tmp_path: Path) -> None:
    for name, precision, score in (("half", "16-mixed", 0.78), ("full", "32-true", 0.88)):
        rows = "".join(f"epoch {e} loss {1 / (e + 1):.4f} val_hmean {score * (1 - 1 / (e + 2)):.4f}\n" for e in range(12))
        (tmp_path / f"{name}.log").write_text(f"precision: {precision}\n{rows}", encoding="utf-8")
    (found,) = examine([str(tmp_path)]).diagnosis.findings
    assert found.rule == "precision/accuracy-loss"
    assert found.causes[0].status == "suspected"
