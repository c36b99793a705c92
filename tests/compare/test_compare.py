"""Runs side by side: which difference explains the outcome, and what is said when that cannot be told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainsleuth.compare import compare, read_run
from trainsleuth.compare.options import as_knob, options_of
from trainsleuth.report.comparison import as_markdown
from watching import ForkServer, trainsleuth

PROGRAM = Path(__file__).with_name("compared_program.py")
RUNS = {
    "good": ("--lr", "0.1", "--seed", "0"), "good-again": ("--lr", "0.1", "--seed", "1"),
    "tiny": ("--lr", "0.0001", "--seed", "0"), "tiny-again": ("--lr", "0.0001", "--seed", "1"),
    "tiny-and-large-batch": ("--lr", "0.0001", "--batch", "64", "--seed", "0"),
}  # fmt: skip


@pytest.fixture(scope="module")
def cases(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a case per way to call the program."""
    folder = tmp_path_factory.mktemp("cases")
    for name, argv in RUNS.items():
        assert server.run(PROGRAM, folder / name, argv).code == 0
    return folder


def test_the_only_difference_is_suspected_until_seeds_say_more(cases: Path) -> None:
    told = compare([read_run(str(cases / name)) for name in ("good", "tiny")])
    assert [(d.name, d.values) for d in told.differences] == [("--lr", ("0.1", "0.0001"))], "the optimizer's lr is the same difference"
    assert told.explanation.status == "suspected"
    assert told.explanation.difference == "--lr"
    assert told.explanation.trials == ("trainsleuth prove tiny --knob lr=--lr=0.1",)


def test_with_two_seeds_each_it_is_explained(cases: Path) -> None:
    told = compare([read_run(str(cases / name)) for name in ("good", "tiny", "good-again", "tiny-again")])
    assert told.groups == ((0, 2), (1, 3))
    assert (told.explanation.status, told.explanation.difference) == ("explained", "--lr")
    assert told.levels[0].seed_spread is not None
    assert told.levels[0].at == 100


def test_runs_that_differ_in_the_seed_alone_differ_in_nothing(cases: Path) -> None:
    told = compare([read_run(str(cases / name)) for name in ("good", "good-again")])
    assert told.explanation.status == "no difference"
    assert "the seed alone" in told.explanation.text


def test_two_differences_cannot_be_told_apart_and_the_trials_that_would_are_named(cases: Path) -> None:
    told = compare([read_run(str(cases / name)) for name in ("good", "tiny-and-large-batch")])
    assert told.explanation.status == "untold"
    assert "trainsleuth prove tiny-and-large-batch --knob lr=--lr=0.1" in told.explanation.trials
    assert any("without --batch" in trial for trial in told.explanation.trials)


def test_a_third_run_tells_them_apart(cases: Path) -> None:
    told = compare([read_run(str(cases / name)) for name in ("good", "tiny", "tiny-and-large-batch")])
    assert (told.explanation.status, told.explanation.difference) == ("suspected", "--lr")


def test_losses_are_compared_at_equal_steps(cases: Path) -> None:
    told = compare([read_run(str(cases / name)) for name in ("tiny", "tiny-and-large-batch")])
    assert told.levels[0].at == 50, "the shorter run has 50 steps"


def test_what_a_case_does_not_tell_is_said(cases: Path) -> None:
    text = as_markdown(compare([read_run(str(cases / name)) for name in ("good", "tiny")]))
    assert "the case keeps no times of phases" in text
    assert "| steps per second |" in text
    assert "| waiting for data |" in text


def test_on_the_command_line(cases: Path) -> None:
    done = trainsleuth("compare", str(cases / "good"), str(cases / "tiny"), "--json", "-", cwd=cases)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["schema"] == 1
    assert [run["outcome"] for run in told["runs"]] == ["learns", "does not learn"]
    assert told["explanation"]["status"] == "suspected"
    shown = trainsleuth("compare", "good", "tiny", cwd=cases)
    assert "--lr" in shown.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(("good",), "needs two cases"), (("good", "nowhere"), "there is no case nowhere"), (("good", "good:T9"), "no trial T9"),
     (("good", "empty"), "holds no facts"), (("good", "broken"), "cannot be read")],
)  # fmt: skip
def test_bad_input_gets_one_sentence(cases: Path, words: tuple[str, ...], sentence: str) -> None:
    for name, content in (("empty", '{"schema": 1, "command": []}'), ("broken", "{")):
        (cases / name / "facts").mkdir(parents=True, exist_ok=True)
        (cases / name / "case.json").write_text(content)
    done = trainsleuth("compare", *words, cwd=cases)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_change_of_the_code_is_seen_and_counted(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    for name, source in (("before", PROGRAM.read_text()), ("after", PROGRAM.read_text().replace("nn.ReLU()", "nn.Tanh()"))):
        script.write_text(source)
        done = trainsleuth("run", "--case", name, "--quiet", "--", sys.executable, "train.py", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    told = compare([read_run(str(tmp_path / name)) for name in ("before", "after")])
    assert [difference.name for difference in told.differences] == ["code"]
    assert told.code == ("train.py: 1 lines added, 1 taken out (before → after)",)


def test_command_lines_in_every_style() -> None:
    found = options_of(["/usr/bin/python3", "src/train.py", "--lr", "-1e-3", "--amp", "--size=4", "model.depth=3", "data"])
    assert found == {"program": "train.py", "--lr": "-1e-3", "--amp": "on", "--size": "4", "model.depth": "3", "argument 1": "data"}
    assert as_knob("--learning-rate", "0.1") == "learning_rate=--learning-rate=0.1"
    assert as_knob("model.depth", "3") == "depth=model.depth=3"


def test_a_commit_is_compared_by_git(cases: Path, tmp_path: Path) -> None:
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words],
                              capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip

    git("init", "-q")
    commits = []
    for text in ("one\n", "one\ntwo\n"):
        (tmp_path / "model.py").write_text(text)
        git("add", "-A")
        git("commit", "-qm", "x")
        commits.append(git("rev-parse", "--short=12", "HEAD"))
    for name, commit in zip(("good", "tiny"), commits):
        about = json.loads((cases / name / "case.json").read_text())
        (cases / name / "case.json").write_text(json.dumps({**about, "git": commit, "cwd": str(tmp_path)}))
    told = compare([read_run(str(cases / name)) for name in ("good", "tiny")])
    assert any("model.py" in line for line in told.code)
    assert {difference.name for difference in told.differences} == {"--lr", "code"}
