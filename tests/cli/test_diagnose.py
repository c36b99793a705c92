"""The command `diagnose` on what runs left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from trainsleuth.postmortem import follow

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
FLAT = CORPUS / "sick" / "stall-flat-loss.log"
FINE = CORPUS / "healthy" / "plain_prints.log"


def diagnose(*words: str, stdin: bytes = b"", cwd: Path | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "trainsleuth", "diagnose", *words], input=stdin, capture_output=True, timeout=60, check=False, cwd=cwd
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_sick_log_ends_with_one_and_its_lines_are_quoted() -> None:
    code, out, _ = diagnose(str(FLAT))
    assert code == 1
    assert "stall/flat-loss" in out
    assert "Epoch 0: train_loss=5.81274" in out
    assert "text log, 80 values of 2 names" in " ".join(out.split())


def test_a_healthy_log_ends_with_zero() -> None:
    code, out, _ = diagnose(str(FINE))
    assert (code, "healthy" in out) == (0, True)


def test_standard_input_and_json() -> None:
    code, out, _ = diagnose("-", "--json", "-", stdin=FLAT.read_bytes())
    report = json.loads(out)
    assert (code, report["schema"], report["verdict"]) == (1, 1, "sick")
    assert report["findings"][0]["where"][0]["file"] == "standard input"
    assert report["findings"][0]["settle"]
    assert report["sources"][0]["format"] == "text log"


def test_a_folder_is_walked_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "train.log").write_bytes(FLAT.read_bytes())
    (tmp_path / "run" / "model.pt").write_bytes(b"\x80\x02junk")
    (tmp_path / "run" / "empty.log").write_bytes(b"")
    (tmp_path / "run" / "strange.dat").write_bytes(bytes(range(256)) * 40)
    code, out, _ = diagnose(str(tmp_path), "--json", "-")
    report = json.loads(out)
    assert code == 1
    assert sorted(row["why"] for row in report["ignored"]) == [".pt files are no logs", "is empty", "is in no format that we know"]
    assert len(report["sources"]) == 1


def test_patterns_and_several_paths(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(FINE.read_bytes())
    code, out, _ = diagnose("*.log", str(FLAT), "--json", "-", cwd=tmp_path)
    assert code == 1
    assert len(json.loads(out)["sources"]) == 3


def test_bad_input_gets_one_sentence_and_two(tmp_path: Path) -> None:
    for words in (("no-such.log",), ("no*such",), (str(tmp_path),)):
        code, out, err = diagnose(*words, cwd=tmp_path)
        assert (code, out) == (2, "")
        assert err.startswith("trainsleuth: ")
        assert err.count("\n") == 1


def test_a_log_is_followed_while_it_grows(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("")
    shown: list[tuple[int, str]] = []
    written = 0

    def write_on() -> bool:
        nonlocal written
        if written == 60:
            return False
        with log.open("a") as file:
            file.writelines(f"step {i} loss {'nan' if i >= 40 else f'{2 - i / 50:.4f}'}\n" for i in range(written, written + 10))
        written += 10
        return True

    seen = follow(log, lambda finding: shown.append((written, finding.rule)), write_on)
    assert shown == [(50, "nan/loss-not-finite")]
    assert seen.diagnosis.findings[0].where[1].line == 41


def test_a_log_that_is_begun_anew_is_read_anew(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {i} loss 0.5{i % 7}{i % 3}\n" for i in range(30)))
    turns = iter([True, False])

    def replace() -> bool:
        log.write_text("step 0 loss 0.9\n")
        return next(turns)

    seen = follow(log, lambda finding: None, replace)
    assert seen.chart.points == 31
