"""From a sick program to its proof and its verified patch, through the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked import bench_of

from trainsleuth.case.folder import open_case
from trainsleuth.trials.bench import Bench, Done
from trainsleuth.trials.trial import Known, Outcome, load_all, save
from watching import ForkServer, needs_sandbox, trainsleuth

SICK = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(512, 16)
y = ((x[:, :4] > 0).long() * torch.tensor([1, 2, 4, 8])).sum(1)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
model[0] = nn.Linear(16, 64)
model[2] = nn.Linear(64, 16)
for step in range(80):
    rows = torch.randint(0, 512, (64,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
print(f"loss {loss.item():.4f}")
"""


@pytest.fixture
def sick(server: ForkServer, tmp_path: Path) -> Path:
    """A working folder with a sick program, and its case."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text(SICK)
    seen = server.run(folder / "train.py", tmp_path / "case")
    assert seen.rules[:1] == ["stall/params-not-in-optimizer"], seen.why()
    (folder / "model.pt").unlink()
    return folder


@needs_sandbox
def test_a_cause_is_proved_its_patch_verified_and_applied(sick: Path) -> None:
    case = str(sick.parent / "case")
    proved = trainsleuth("prove", case, "--json", "proof.json", cwd=sick.parent)
    assert proved.returncode == 1, proved.stderr
    assert "confirmed" in proved.stdout
    assert sorted(path.name for path in sick.iterdir()) == ["train.py"], "a trial wrote into the working folder"
    report = json.loads((sick.parent / "proof.json").read_text())
    cause = report["findings"][0]["causes"][0]
    assert (cause["status"], len(cause["trials"])) == ("confirmed", 3)
    rows = {trial["role"]: trial for trial in report["trials"] if "role" in trial}
    assert rows["control"]["mechanism"] > 0
    assert rows["knob"]["mechanism"] == 0
    assert rows["knob"]["loss"]["last"] < 0.5 * rows["control"]["loss"]["last"]

    fixed = trainsleuth("fix", case, "F1", "--verify", "--apply", cwd=sick.parent)
    assert fixed.returncode == 0, fixed.stderr
    assert "verified: the finding is gone, and the loss ends lower" in fixed.stderr
    assert "known from before" in fixed.stderr, "the control was run again"
    text = (sick / "train.py").read_text()
    assert text.index("model[2] = nn.Linear(64, 16)") < text.index("optimizer = torch.optim.SGD")
    assert "+optimizer = torch.optim.SGD" in fixed.stdout
    stored = json.loads(Path(case, "report.json").read_text())
    assert stored["findings"][0]["remedies"][0]["verified"] is True
    assert Path(case, "backups", "B1", "train.py").read_text() == SICK


IN_TWO_PHASES = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(512, 16)
y = ((x[:, :4] > 0).long() * torch.tensor([1, 2, 4, 8])).sum(1)

def warm_up(trunk):
    head = nn.Linear(64, 16)
    optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.5)
    for step in range(210):
        loss = nn.functional.mse_loss(head(trunk(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def tune(trunk):
    model = nn.Sequential(trunk, nn.Linear(64, 5))
    trunk.requires_grad_(False)
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.5)
    model[1] = nn.Linear(64, 16)
    for step in range(240):
        rows = torch.randint(0, 512, (64,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

trunk = nn.Sequential(nn.Linear(16, 64), nn.ReLU())
warm_up(trunk)
tune(trunk)
"""


@needs_sandbox
def test_a_fault_in_the_second_phase_is_tried_there(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(IN_TWO_PHASES)
    seen = server.run(tmp_path / "train.py", tmp_path / "case")
    assert seen.rules[:1] == ["stall/params-not-in-optimizer"], seen.why()
    proved = trainsleuth("prove", "case", "--json", "proof.json", cwd=tmp_path)
    report = json.loads((tmp_path / "proof.json").read_text())
    assert report["findings"][0]["causes"][0]["status"] == "confirmed", proved.stdout
    rows = {trial["role"]: trial for trial in report["trials"] if "role" in trial}
    assert rows["control"]["loss"]["last"] > 2, "the loss of the first phase was taken"


def test_a_file_with_changes_that_are_not_committed_is_left_alone_unless_forced(sick: Path) -> None:
    case = str(sick.parent / "case")
    subprocess.run(["git", "init", "-q"], cwd=sick, check=True)
    refused = trainsleuth("fix", case, "F1", "--apply", cwd=sick.parent)
    assert refused.returncode == 2
    assert "not committed" in refused.stderr
    assert (sick / "train.py").read_text() == SICK
    forced = trainsleuth("fix", case, "F1", "--apply", "--force", cwd=sick.parent)
    assert forced.returncode == 0, forced.stderr
    assert (sick / "train.py").read_text() != SICK
    assert Path(case, "backups", "B1", "train.py").read_text() == SICK


def test_a_finding_that_the_case_does_not_have_is_an_error_with_the_list_of_those_it_has(sick: Path) -> None:
    for words in (("prove",), ("fix",)):
        done = trainsleuth(*words, str(sick.parent / "case"), "F9", cwd=sick.parent)
        assert done.returncode == 2
        assert "no finding F9" in done.stderr
        assert "F1 stall/params-not-in-optimizer" in done.stderr


def test_the_diff_alone_changes_nothing(sick: Path) -> None:
    done = trainsleuth("fix", str(sick.parent / "case"), cwd=sick.parent)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("--- a/train.py")
    assert (sick / "train.py").read_text() == SICK


def test_a_budget_that_is_no_time_is_an_error(sick: Path) -> None:
    done = trainsleuth("prove", str(sick.parent / "case"), "--budget", "soon", cwd=sick.parent)
    assert done.returncode == 2
    assert "soon is no length of time" in done.stderr


def test_a_command_line_that_held_a_secret_is_not_run_again(sick: Path) -> None:
    case = sick.parent / "case" / "case.json"
    about = json.loads(case.read_text())
    about["command"] = [sys.executable, "train.py", "--token", "***"]
    case.write_text(json.dumps(about))
    done = trainsleuth("prove", str(case.parent), cwd=sick.parent)
    assert done.returncode == 2
    assert "held a secret" in done.stderr


@needs_sandbox
def test_ctrl_c_ends_the_trials_and_leaves_no_process(sick: Path) -> None:
    mark = f"trainsleuth-interrupted-{os.getpid()}"
    case = sick.parent / "case"
    about = json.loads((case / "case.json").read_text())
    about["command"] = [sys.executable, "-c", "import time; time.sleep(60)", mark]
    (case / "case.json").write_text(json.dumps(about))
    process = subprocess.Popen(
        [sys.executable, "-m", "trainsleuth", "prove", str(case)], cwd=sick.parent, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    until = time.monotonic() + 60
    while not list(case.glob("trials/T*/facts/*.jsonl")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert b"are kept" in said
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _has(path, mark)]
    assert left == []


@needs_sandbox
def test_a_suspicion_is_refuted_and_struck_out_beside_the_true_cause(sick: Path) -> None:
    case = str(sick.parent / "case")
    done = trainsleuth("prove", case, "--suspect", "learning-rate:0.1", "--windows", "30", cwd=sick.parent)
    assert done.returncode == 1, done.stderr
    causes = {cause["rule"]: cause for cause in json.loads(Path(case, "report.json").read_text())["findings"][0]["causes"]}
    assert causes["knob/learning-rate:0.1"]["status"] == "refuted"
    assert "all 30 losses are the same to the last digit" in causes["knob/learning-rate:0.1"]["why"]
    assert causes["stall/params-not-in-optimizer"]["status"] == "suspected"


def test_a_knob_that_does_not_exist_is_an_error(sick: Path) -> None:
    done = trainsleuth("prove", str(sick.parent / "case"), "--suspect", "moon", cwd=sick.parent)
    assert done.returncode == 2
    assert "there is no knob moon" in done.stderr


TWO_FAULTS = SICK.replace("lr=0.5", "lr=0.0").replace("range(80)", "range(120)")


@needs_sandbox
@pytest.mark.long
def test_of_knobs_that_cure_only_together_the_smallest_set_is_found(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TWO_FAULTS)
    server.run(tmp_path / "train.py", tmp_path / "case")
    knobs = ("constant-learning-rate", "optimizer-owns-all", "shuffle")
    words = [word for knob in knobs for word in ("--suspect", knob)]
    done = trainsleuth("prove", str(tmp_path / "case"), *words, "--windows", "40", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    report = json.loads((tmp_path / "case" / "report.json").read_text())
    causes = {cause["rule"]: cause for cause in report["findings"][0]["causes"]}
    for knob in knobs[:2]:
        assert "only together (constant-learning-rate + optimizer-owns-all)" in causes[f"knob/{knob}"]["why"]
    assert "together" not in causes["knob/shuffle"].get("why", "")


CRASHING = """
import torch
from torch import nn


class Faulty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("no kernel for this shape")


class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return Faulty.apply(x * self.scale)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.middle, self.head = nn.Linear(4, 8), Middle(), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.middle(self.encoder(x)).relu())


torch.set_num_threads(1)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = nn.functional.cross_entropy(model(torch.randn(6, 4)), torch.randint(0, 2, (6,)))
    loss.backward()
    optimizer.step()
"""


@needs_sandbox
@pytest.mark.long
def test_the_part_that_crashes_alone_is_found(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CRASHING)
    server.run(tmp_path / "train.py", tmp_path / "case")
    done = trainsleuth("prove", str(tmp_path / "case"), "--isolate", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    rows = {row["label"]: row["outcome"] for row in json.loads((tmp_path / "case" / "report.json").read_text())["trials"] if "outcome" in row}
    assert rows == {
        "encoder alone": "healthy", "middle alone": "crash", "head alone": "healthy", "the loss alone": "healthy",
        "encoder + middle": "crash", "middle + head": "crash", "all, sum instead of loss": "crash", "all, with the loss": "crash",
    }  # fmt: skip
    assert "isolated: middle alone is enough" in " ".join(done.stdout.split())


HANGING = """
import os, threading
import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    loss = model(torch.randn(6, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 2 and os.environ.get("MODE") != "free":
        threading.Lock().acquire() and threading.Event().wait()
"""


@needs_sandbox
def test_a_hang_is_seen_again_in_a_trial_and_the_users_own_knob_ends_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HANGING)
    words = ["--case", "case", "--quiet", "--hang-after", "2", "--on-hang", "kill", "--", sys.executable, "train.py"]
    trainsleuth("run", *words, cwd=tmp_path)
    done = trainsleuth("prove", "case", "--knob", "free=ENV:MODE=free", cwd=tmp_path)
    report = json.loads((tmp_path / "case" / "report.json").read_text())
    cause = next(cause for cause in report["findings"][0]["causes"] if cause["rule"] == "knob/free")
    assert (cause["status"], len(cause["trials"])) == ("workaround", 6), done.stderr
    assert "goes on in 3 of 3 runs, where it stands still in 3 of 3" in cause["why"]


LEAF = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    loss = model(torch.randn(6, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step > 4:
        model.weight.clamp_(-1, 1)
"""


@needs_sandbox
def test_where_no_knob_reaches_the_cause_its_lines_are_rewritten(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LEAF)
    trainsleuth("run", "--case", "case", "--quiet", "--", sys.executable, "train.py", cwd=tmp_path)
    done = trainsleuth("prove", "case", cwd=tmp_path)
    report = json.loads((tmp_path / "case" / "report.json").read_text())
    cause = report["findings"][0]["causes"][0]
    assert (cause["rule"], cause["status"]) == ("autograd/leaf-modified", "confirmed"), done.stdout + done.stderr
    assert (tmp_path / "train.py").read_text() == LEAF


LOGGED = """
import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter
torch.manual_seed(0)
torch.set_num_threads(1)
net, board = nn.Linear(4, 1), SummaryWriter("board")
opt = torch.optim.SGD(net.parameters(), lr=0.01)
data = list(torch.randn(20, 16, 4))
for epoch in range(5):
    for i, x in enumerate(data):
        loss = (net(x).squeeze(-1) - x.sum(1)).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
        board.add_scalar("loss", loss.item(), i)
"""


def test_a_fault_of_the_log_is_proved_and_cured_and_the_training_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOGGED)
    seen = trainsleuth("run", "--case", "case", "--prove", "--fix", "--", sys.executable, "train.py", cwd=tmp_path)
    said = " ".join((seen.stdout + seen.stderr).split())
    assert seen.returncode == 0, said
    assert "logging/step-not-increasing" in said
    assert "all 100 losses of the training are the same to the last digit" in said
    assert "epoch * len(data) + i" in said
    assert "verified" in said


def test_the_list_of_knobs_and_the_page_of_one() -> None:
    listed = trainsleuth("knobs", cwd=Path.cwd())
    assert "optimizer-owns-all" in listed.stdout
    page = trainsleuth("knobs", "spawn", cwd=Path.cwd())
    assert "Not applicable when" in page.stdout
    assert trainsleuth("knobs", "moon", cwd=Path.cwd()).returncode == 2


@needs_sandbox
@pytest.mark.long
def test_run_prove_fix_does_all_in_one_go_and_keeps_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SICK + "raise SystemExit(3)\n")
    words = ("--case", "case", "--prove", "--fix", "--json", "out.json", "--", sys.executable, "train.py")
    done = trainsleuth("run", *words, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    finding = json.loads((tmp_path / "out.json").read_text())["findings"][0]
    assert finding["causes"][0]["status"] == "confirmed"
    assert finding["remedies"][0]["verified"] is True


@needs_sandbox
def test_a_symptom_that_came_too_late_for_the_budget_is_told_before_the_trials(sick: Path) -> None:
    case = sick.parent / "case"
    report = json.loads((case / "report.json").read_text())
    report["findings"][0]["step"] = 500_000
    (case / "report.json").write_text(json.dumps(report))
    done = trainsleuth("prove", str(case), "--budget", "60s", cwd=sick.parent)
    assert "the symptom was known at step 500,000" in done.stderr
    assert done.stderr.index("500,000") < done.stderr.index("control")


def _has(path: Path, mark: str) -> bool:
    try:
        return mark.encode() in path.read_bytes()
    except OSError:
        return False


BROKEN_AT_ONCE = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(30):
    x = torch.randn(16, 8)
    apart = net(x) - net(x).detach()
    loss = apart.pow(2).sum(1).sqrt().mean() + nn.functional.cross_entropy(net(x), x[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_trial_whose_first_gradients_are_not_finite_is_kept_and_read_again(server: ForkServer, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(BROKEN_AT_ONCE)
    bench = bench_of(server, script, tmp_path / "case")
    done = [event.known for event in bench.run([bench.trial("control", "control")]) if isinstance(event, Done)]
    assert [known.outcome.kind for known in done] == ["nan"]
    assert [known.key for known in load_all(bench.case.trials)] == [known.key for known in done]


def test_a_trial_that_an_earlier_budget_cut_off_is_run_again_when_there_is_more_time(sick: Path) -> None:
    case = open_case(sick.parent / "case")
    folder = case.trials
    folder.mkdir(exist_ok=True)
    save(folder, Known("T1", "control", "control", "key", Outcome("stalled", "", None, {}, 3, 10.0, True, (), cut=True)))
    assert [known.id for known in Bench(case, time.monotonic() + 30).known] == ["T1"]
    assert Bench(case, time.monotonic() + 300).known == []


def test_an_exception_of_the_source_itself_is_not_put_to_trial(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nimport module_that_is_not_there\n")
    trainsleuth("run", "--case", "case", "train.py", cwd=tmp_path)
    proved = trainsleuth("prove", "case", cwd=tmp_path)
    assert "ModuleNotFoundError comes from the source or its files, which no knob changes" in proved.stderr
    assert not list((tmp_path / "case" / "trials").iterdir())


RESERVOIR = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(512, 8)
y = torch.sin(x[:, :3]).sum(1, keepdim=True)
reservoir = nn.Sequential(nn.Linear(8, 512), nn.Tanh())
reservoir.requires_grad_(False)
readout = nn.Linear(512, 1)
model = nn.Sequential(reservoir, readout)
optimizer = torch.optim.Adam(readout.parameters(), lr=3e-3)
for step in range(200):
    rows = torch.randint(0, 512, (64,))
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@needs_sandbox
def test_what_may_be_meant_is_left_alone_where_the_run_learns(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RESERVOIR)
    server.run(tmp_path / "train.py", tmp_path / "case")
    trainsleuth("prove", str(tmp_path / "case"), "--json", "proof.json", cwd=tmp_path)
    report = json.loads((tmp_path / "proof.json").read_text())
    assert [(finding["rule"], finding["severity"]) for finding in report["findings"]] == [("stall/params-frozen", "note")]
    assert not any(trial.get("verdict") == "confirmed" for trial in report["trials"])
