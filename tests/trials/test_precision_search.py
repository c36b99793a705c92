"""16 bit against 32 bit: the gap, the modules that make it, the patch; and programs that lose nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forked import bench_of

from trainsleuth import remedies
from trainsleuth.report.precision import add_precision, conclusion, no_loss, speed
from trainsleuth.report.proof import add_verdict, asked_about, findings_of
from trainsleuth.trials import ends
from trainsleuth.trials.bench import Bench
from trainsleuth.trials.chance import interval
from trainsleuth.trials.halves import ModuleError, Tree
from trainsleuth.trials.knobs import named
from trainsleuth.trials.precision import Asked, Patched, Precision, Side, check, search
from trainsleuth.trials.settle import Note, Settled, suspect
from trainsleuth.trials.smallest import first_enough, leave_out
from trainsleuth.trials.trial import Known, Outcome
from watching import ForkServer, needs_sandbox, trainsleuth

VARIANCE = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Standardise(nn.Module):
    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x * x).mean(-1, keepdim=True) - mean * mean
        return (x - mean) * torch.rsqrt(variance.clamp_min(1e-4))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(16, 32)
        nn.init.constant_(self.encode.bias, 230.0)
        self.standardise = Standardise()
        self.decide = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.decide(self.standardise(self.encode(x)))


x = torch.randn(768, 16)
y = (x[:, :2] > 0).long() @ torch.tensor([1, 2])
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(50):
    rows = torch.randint(0, 512, (64,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
    print(f"val accuracy {(model(x[512:]).argmax(1) == y[512:]).float().mean():.4f}")
"""
SUM_OF_SQUARES = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class SumOfSquares(nn.Module):
    def forward(self, predicted, wanted):
        difference = predicted["map"] - wanted.to(predicted["map"].dtype)
        return (difference * difference).sum() / difference.numel()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return {"map": self.body(x)}


x = torch.randn(1024, 8)
y = 60 * torch.tanh(x @ torch.randn(8, 16))
model, criterion = Net(), SumOfSquares()
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for step in range(80):
    rows = torch.randint(0, 1024, (64,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = criterion(model(x[rows]), y[rows])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
with torch.no_grad():
    print(f"val mse {nn.functional.mse_loss(model(x)['map'], y):.4f}")
"""
HEALTHY = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(768, 16)
y = (x[:, :2] > 0).long() @ torch.tensor([1, 2])
model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(60):
    rows = torch.randint(0, 512, (64,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"val accuracy {(model(x[512:]).argmax(1) == y[512:]).float().mean():.4f}")
"""


def watched(server: ForkServer, folder: Path, source: str) -> str:
    """A working folder with a program, and its case."""
    (folder / "work").mkdir()
    (folder / "work" / "train.py").write_text(source)
    seen = server.run(folder / "work" / "train.py", folder / "case")
    assert seen.code == 0, seen.output
    return str(folder / "case")


def proved(case: str, folder: Path, *words: str) -> tuple[Any, dict[str, Any]]:
    done = trainsleuth("prove", case, *words, "--json", "proof.json", cwd=folder)
    return done, json.loads((folder / "proof.json").read_text()) if (folder / "proof.json").is_file() else {}


def searched(server: ForkServer, folder: Path, source: str, asked: Asked) -> tuple[Bench, Precision]:
    """The whole search, each trial a fork."""
    folder.mkdir(exist_ok=True)
    script = folder / "train.py"
    script.write_text(source)
    bench = bench_of(server, script, folder / "case")
    found = [event for event in search(bench, asked) if isinstance(event, Precision)]
    assert len(found) == 1
    return bench, found[0]


def test_the_module_that_does_not_bear_16_bit_is_found_and_its_call_rewritten(server: ForkServer, tmp_path: Path) -> None:
    bench, known = searched(server, tmp_path / "work", VARIANCE, Asked(seeds=2))
    assert known.lost
    assert known.kept == ("Net.standardise",), conclusion(known)
    assert known.proved, conclusion(known)
    assert "return self.decide(in_32_bit(self.standardise, self.encode(x)))" in next(iter(patch_for(bench, known).files.values())).decode()


@pytest.mark.long
def test_a_loss_module_is_found_too_and_the_patch_wins_the_loss_back(server: ForkServer, tmp_path: Path) -> None:
    bench, known = searched(server, tmp_path / "work", SUM_OF_SQUARES, Asked(metric="mse"))
    assert known.kept == ("SumOfSquares",), conclusion(known)
    patch = patch_for(bench, known)
    assert "loss = in_32_bit(criterion, model(x[rows]), y[rows])" in next(iter(patch.files.values())).decode()
    checked = [event for event in check(bench, patch.files) if isinstance(event, Patched)]
    assert checked[0].ok, checked[0]


def patch_for(bench: Bench, known: Precision) -> remedies.Patch:
    report: dict[str, Any] = {"findings": [], "trials": [], "verdict": "healthy"}
    assert add_precision(report, known, bench.case.cwd) == "F1"
    patch = remedies.propose(findings_of(report, bench.case.cwd)[0])
    assert patch is not None
    return patch


@pytest.mark.long
def test_a_healthy_program_loses_nothing_in_bfloat16_or_in_float16(server: ForkServer, tmp_path: Path) -> None:
    for dtype in ("own", "fp16"):
        _, known = searched(server, tmp_path / dtype, HEALTHY, Asked(dtype))
        assert not known.lost, known
        assert "No loss by 16 bit is found: val accuracy is" in no_loss(known)


def test_the_missing_scaler_is_refuted_where_there_is_one_and_the_run_has_no_finding(server: ForkServer, tmp_path: Path) -> None:
    """The popular suspicion: «the framework forgets the gradient scaler»."""
    script = tmp_path / "train.py"
    script.write_text(VARIANCE)
    bench = bench_of(server, script, tmp_path / "case")
    report: dict[str, Any] = {"findings": [], "trials": []}
    asked = asked_about(report)
    settled = [event for event in suspect(bench, asked, [named("scaler-on")]) if isinstance(event, Settled)]
    assert settled[0].verdict.status == "refuted", settled[0].verdict.why
    assert settled[0].verdict.why == "no scaler is missing: a scaler is at work, its scale goes from 1,024 to 1,024, 0 of 50 steps are skipped"
    add_verdict(report, settled[0].finding, settled[0].verdict, settled[0].statement)
    assert report["asked"][0]["causes"][0]["status"] == "refuted"


@needs_sandbox
def test_prove_says_on_the_command_line_that_nothing_is_lost(server: ForkServer, tmp_path: Path) -> None:
    case = watched(server, tmp_path, HEALTHY)
    done, report = proved(case, tmp_path, "--precision", "--seeds", "2")
    assert done.returncode == 0, done.stderr
    assert "the program computes in 32 bit; its models are called under autocast to bfloat16" in done.stderr
    assert "No loss by 16 bit is found: val accuracy is" in done.stdout
    assert "with an error rate of 5 %" in done.stdout
    assert not report["precision"]["lost"]
    assert all(row["rule"] != "precision/accuracy-loss" for row in report["findings"])


@needs_sandbox
@pytest.mark.long
def test_from_the_command_line_to_the_applied_patch(server: ForkServer, tmp_path: Path) -> None:
    case = watched(server, tmp_path, VARIANCE)
    done, report = proved(case, tmp_path, "--precision", "--seeds", "4")
    assert done.returncode == 1, done.stderr
    assert report["precision"]["kept"] == ["Net.standardise"], done.stdout + done.stderr
    finding = next(row for row in report["findings"] if row["rule"] == "precision/accuracy-loss")
    assert finding["causes"][0]["status"] == "confirmed"
    assert finding["where"][0]["code"] == "return self.decide(self.standardise(self.encode(x)))"
    fixed = trainsleuth("fix", case, finding["id"], "--verify", "--apply", cwd=tmp_path)
    assert fixed.returncode == 0, fixed.stderr
    assert "of what 16 bit loses is won back over 4 seeds" in fixed.stderr
    assert "known from before" in fixed.stderr, "runs of the search were made again"
    assert "in_32_bit(self.standardise, self.encode(x))" in (tmp_path / "work" / "train.py").read_text()


@needs_sandbox
@pytest.mark.long
def test_a_suspicion_is_tried_on_the_command_line_although_the_run_has_no_finding(server: ForkServer, tmp_path: Path) -> None:
    case = watched(server, tmp_path, HEALTHY)
    assert json.loads(Path(case, "report.json").read_text())["findings"] == []
    done, report = proved(case, tmp_path, "--suspect", "learning-rate:0.1")
    assert done.returncode == 1, done.stderr
    assert report["asked"][0]["causes"][0]["status"] == "refuted", done.stdout
    assert "the run has no finding; what you suspect is tried against its loss" in done.stdout


@pytest.mark.long
def test_a_metric_that_the_program_does_not_have_is_said(server: ForkServer, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(HEALTHY)
    said = list(search(bench_of(server, script, tmp_path / "case"), Asked(seeds=2, metric="hmean")))
    assert isinstance(said[-1], Note)
    assert "logs and prints no hmean" in said[-1].text


# -- the parts ---------------------------------------------------------------------------------------------------------


def test_the_interval_holds_the_true_difference_in_95_of_100_cases() -> None:
    chance = random.Random(1)
    held = 0
    for _ in range(2000):
        found = interval([0.3 + chance.gauss(0, 0.1) for _ in range(4)])
        assert found is not None
        held += found.low <= 0.3 <= found.high
    assert 0.93 <= held / 2000 <= 0.97
    assert interval([0.3]) is None


def test_what_is_not_needed_is_left_out() -> None:
    asked: list[tuple[str, ...]] = []

    def decide(chosen: Sequence[str]) -> Generator[str, None, bool]:
        asked.append(tuple(chosen))
        yield "tried"
        return {"b", "d"} <= set(chosen)

    assert _result(leave_out(["a", "b", "c", "d"], decide)) == ["b", "d"]
    assert _result(first_enough(["a", "b", "c", "d", "e"], decide)) == ["b", "d"]
    assert _result(first_enough(["a", "b"], decide)) == []
    asked.clear()
    assert _result(first_enough(["b"], lambda chosen: iter_true())) == ["b"]


def iter_true() -> Generator[str, None, bool]:
    yield "tried"
    return True


def _result(steps: Generator[str, None, list[str]]) -> list[str]:
    try:
        while True:
            next(steps)
    except StopIteration as ended:
        return list(ended.value)


def error(module: str, output: float = 0.0, gradient: float = 0.0, overflows: float = 0.0) -> ModuleError:
    return ModuleError(module, "Module", output, gradient, 0.0, 0.1 * overflows, overflows, 0.1, 10, None)


def test_the_prime_suspect_is_the_innermost_part_that_has_the_error_of_the_whole() -> None:
    tree = Tree([error("Net", 0.5), error("Net.a", 0.01), error("Net.b", 0.4), error("Net.b.c", 0.02), error("Net.b.d", 0.1)])
    assert tree.prime_suspect() == "Net.b"
    assert tree.all_but(["Net.b.d"]) == ["Net.b.c", "Net.a"]
    parts = [error("Net.a", 0.5, overflows=0.1), error("Net.b", 0.01, overflows=0.5)]
    overflowing = Tree([error("Net", 0.5, overflows=0.5), *parts, error("Loss", 0.9)])
    assert overflowing.prime_suspect() == "Net.b"
    assert overflowing.roots() == ["Net", "Loss"]


def test_modules_in_lists_belong_to_the_module_that_calls_them() -> None:
    tree = Tree([error("Net"), error("Net.neck"), error("Net.neck.lateral.0"), error("Net.neck.lateral.1")])
    assert tree.above("Net.neck.lateral.1") == ["Net.neck", "Net"]
    assert set(tree.children("Net.neck")) == {"Net.neck.lateral.0", "Net.neck.lateral.1"}


def test_the_score_that_sums_up_is_compared_and_a_training_loss_where_there_is_none() -> None:
    curve = tuple((n, 1.0) for n in range(1, 9))
    scored = Outcome("healthy", scores={"val/recall": 0.9, "val/hmean": 0.8, "val/loss": 1.0}, curve=curve)
    assert ends.choose([scored, scored]) == ends.Measure("val/hmean", True)
    assert ends.choose([scored], "recall") == ends.Measure("val/recall", True)
    assert ends.choose([scored], "cer") is None
    assert ends.choose([Outcome("healthy", scores={"cer": 0.1})]) == ends.Measure("cer", False)
    assert ends.choose([Outcome("healthy", curve=curve)]) == ends.Measure(ends.TRAINING_LOSS, False)


def side(label: str, ends_: Sequence[float | None], pace: float = 0.1) -> Side:
    trials = tuple(Known(f"T{n}", "knob", label, label, Outcome("healthy", pace=pace)) for n, _ in enumerate(ends_))
    return Side(label, trials, tuple(ends_))


def test_the_speed_that_is_kept_is_a_share_of_what_16_bit_gains() -> None:
    tree = Tree([error("Net"), error("Net.a")])
    known = Precision(ends.Measure("hmean", True), side("16 bit", [0.7, 0.7], 0.06), side("32 bit", [0.9, 0.9], 0.10), None, True, tree=tree)
    kept = replace(known, kept=("Net.a",), cured=side("kept in 32 bit", [0.9, 0.9], 0.07))
    assert "75 % of what 16 bit gains is kept" in speed(kept)
    slow = replace(kept, half=side("16 bit", [0.7, 0.7], 0.12))
    assert "16 bit is no faster than 32 bit on this machine" in speed(slow)


def test_it_is_proved_only_if_these_modules_are_enough_and_all_others_are_not() -> None:
    known = Precision(ends.Measure("cer", False), side("16 bit", [0.5, 0.6]), side("32 bit", [0.1, 0.2]), None, True, kept=("Net.a",))
    assert not known.proved
    enough = replace(known, cured=side("kept", [0.12, 0.2]))
    assert enough.proved
    assert replace(enough, opposite=side("the others", [0.5, 0.55])).proved
    assert not replace(enough, opposite=side("the others", [0.1, 0.2])).proved
    assert not replace(known, cured=side("kept", [0.3, 0.4])).proved
    assert not replace(known, cured=side("kept", [0.1, None])).proved


def test_runs_that_break_in_16_bit_are_won_back_by_runs_that_do_not() -> None:
    known = Precision(ends.Measure("loss", False), side("16 bit", [None, None, 0.3]), side("32 bit", [0.1, 0.2, 0.1]), None, True, kept=("Net.a",))
    assert replace(known, cured=side("kept", [0.1, 0.2, 0.1])).proved
    assert not replace(known, cured=side("kept", [None, 0.2, None])).proved
    assert "2 of 3 runs break in 16 bit and 0 of 3" in no_loss(known)


def test_modules_are_compared_on_the_same_inputs_and_the_program_goes_on_as_before(server: ForkServer, tmp_path: Path) -> None:
    turned = Path(__file__).with_name("turned.py")
    script = tmp_path / "train.py"
    script.write_text(VARIANCE.replace("self.encode(x)))", "nn.functional.dropout(self.encode(x), 0.1)))"))
    knobs = [{"knob": "every-window"}, {"knob": "compare-halves", "options": {"windows": [2, 900]}}]
    plain = server.run(turned, tmp_path / "plain", [json.dumps(knobs[:1]), str(script)])
    seen = server.run(turned, tmp_path / "compared", [json.dumps(knobs), str(script)])
    assert seen.output == plain.output, "the instrument changed the program's numbers"
    facts = [json.loads(line) for path in seen.folder.glob("facts/*.jsonl") for line in path.read_text().splitlines()]
    assert not [fact for fact in facts if fact["k"] in ("probe_off", "knob_failed")]
    rows = {row["module"]: row for fact in facts if fact["k"] == "knob_acted" for row in fact["rows"]}
    assert set(rows) == {"Net", "Net.encode", "Net.standardise", "Net.decide", "Net.decide.0", "Net.decide.1", "Net.decide.2"}
    assert rows["Net.standardise"]["output"] > 10 * rows["Net.encode"]["output"] > 0
    assert rows["Net.standardise"]["at"][2] == "forward"
    assert rows["Net.decide.0"]["at"] is None, "nn.Sequential calls it, no line of the user's"
    assert rows["Net.decide.1"]["output"] == 0
