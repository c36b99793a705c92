"""Each knob on a tiny program: it changes its mechanism, and nothing else."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import _trainsleuth_inside
from trainsleuth.rules.catalogue import all_rules
from trainsleuth.trials.knobs import KNOBS, KnobError, named, own
from trainsleuth.trials.measure import measure
from trainsleuth.trials.sandbox import Ended
from trainsleuth.trials.trial import Outcome, Setting, Trial, overridden
from watching import ForkServer

INJECT = Path(_trainsleuth_inside.__file__).parent / "inject"
HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(64, 8)
y = (x.sum(1) > 0).long()
"""


Run = Callable[..., tuple[Outcome, str, list[dict[str, Any]]]]


@pytest.fixture
def run(server: ForkServer) -> Run:
    """Run a program with knobs, without the sandbox; its outcome, what it printed, and its facts."""

    def turned(folder: Path, source: str, *settings: Setting) -> tuple[Outcome, str, list[dict[str, Any]]]:
        folder.mkdir()
        script = folder / "program.py"
        script.write_text(HEAD + textwrap.dedent(source))
        knobs = [{"knob": "every-window"}, *({"knob": s.knob, "options": dict(s.options)} for s in settings)]
        seen = server.run(Path(__file__).with_name("turned.py"), folder / "case", [json.dumps(knobs), str(script)], cwd=folder)
        facts = [json.loads(line) for path in seen.folder.glob("facts/*.jsonl") for line in path.read_text().splitlines()]
        assert seen.code == 0, seen.output
        assert [fact for fact in facts if fact["k"] in ("knob_failed", "probe_off")] == []
        trial = Trial("knob", "knob", settings, 0, "")
        return measure(trial, seen.folder, Ended("exit", seen.code, 1.0)), seen.output, facts

    return turned


def line_of(source: str, text: str) -> int:
    return next(n for n, line in enumerate((HEAD + textwrap.dedent(source)).splitlines(), 1) if text in line)


def at(folder: Path, source: str, text: str) -> list[list[Any]]:
    return [[str(folder / "program.py"), line_of(source, text)]]


FROZEN = """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
head = nn.Linear(2, 2)
for p in model.parameters():
    p.requires_grad = False
head.weight.requires_grad_(False)
opt = torch.optim.SGD([p for p in [*model.parameters(), *head.parameters()] if p.requires_grad], lr=0.5)
both = nn.Sequential(model, head)
for step in range(30):
    loss = nn.functional.cross_entropy(both(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
held = sum(len(group["params"]) for group in opt.param_groups)
print(head.weight.requires_grad, all(p.requires_grad for p in model.parameters()), held)
"""


def test_unfreeze_undoes_the_named_line_and_no_other(tmp_path: Path, run: Run) -> None:
    where = at(tmp_path / "a", FROZEN, "p.requires_grad = False")
    outcome, printed, _ = run(tmp_path / "a", FROZEN, Setting("unfreeze", {"at": where}))
    assert printed.split() == ["False", "True", "5"]
    assert outcome.kind == "healthy"
    assert outcome.mechanism["stall/params-frozen"] == pytest.approx(180 / 184, abs=0.01)


def test_unfreeze_without_a_line_undoes_all_that_the_user_froze_also_at_birth(tmp_path: Path, run: Run) -> None:
    born_frozen = "head = nn.Linear(2, 2)\nhead.bias = nn.Parameter(torch.zeros(2), requires_grad=False)"
    source = FROZEN.replace("head = nn.Linear(2, 2)", born_frozen)
    _, printed, _ = run(tmp_path / "a", source, Setting("unfreeze", {"at": []}))
    assert printed.split() == ["True", "True", "6"]


def test_a_knob_that_finds_nothing_to_change_is_not_applicable(tmp_path: Path, run: Run) -> None:
    outcome, _, _ = run(tmp_path / "a", FROZEN, Setting("unfreeze", {"at": [["/elsewhere.py", 1]]}))
    assert outcome.kind == "not applicable"
    assert not outcome.acted


ORPHANS = """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(model[0].parameters(), lr=0.05)
plan = torch.optim.lr_scheduler.OneCycleLR(opt, 0.05, total_steps=40)
before = model[2].weight.detach().clone()
for step in range(30):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step(); plan.step()
print(bool((model[2].weight != before).any()), len(opt.param_groups))
"""


def test_optimizer_owns_all_adopts_orphans_and_schedulers_go_on(tmp_path: Path, run: Run) -> None:
    control, printed, _ = run(tmp_path / "control", ORPHANS)
    assert printed.split() == ["False", "1"]
    assert control.mechanism["stall/params-not-in-optimizer"] == 34
    turned, printed, _ = run(tmp_path / "turned", ORPHANS, Setting("optimizer-owns-all"))
    assert printed.split() == ["True", "1"]
    assert turned.mechanism["stall/params-not-in-optimizer"] == 0


DISCARDED = """
model = nn.Linear(8, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
used = []
opt.register_step_pre_hook(lambda *_: used.append(model.bias.grad.clone()))
for step in range(32):
    {clear}
    loss = nn.functional.cross_entropy(model(x[step % 4 :: 4]), y[step % 4 :: 4]) / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        opt.step()
"""


@pytest.mark.parametrize(
    ("clear", "by_hand"),
    [
        ("opt.zero_grad()", False),
        ("model.zero_grad()", False),
        ("for p in model.parameters(): p.grad = None", True),
        ("if (step + 1) % 4 == 0: opt.zero_grad()", False),
    ],
)
def test_clear_only_after_step_keeps_every_micro_batch_and_still_clears(
    tmp_path: Path, run: Run, clear: str, by_hand: bool
) -> None:
    source = DISCARDED.format(clear=clear) + "\nprint(float(model.bias.grad.abs().sum()) < 1.0)\n"
    where = at(tmp_path / "turned", source, clear)
    outcome, _, facts = run(tmp_path / "turned", source, Setting("clear-only-after-step", {"at": where, "by_hand": by_hand}))
    rows = [fact for fact in facts if fact["k"] == "windows"]
    assert sum(row["delivered"] for row in rows) == 32
    assert outcome.mechanism["stall/accumulated-gradients-discarded"] == 0
    assert sum(row["stale"] for row in rows) == 0
    assert outcome.acted


ASLEEP = """
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2)).eval()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
with torch.no_grad():
    assert not model.training and not model[1].training
print(model[1].num_batches_tracked.item())
"""


def test_train_mode_wakes_the_model_for_training_forwards_only(tmp_path: Path, run: Run) -> None:
    control, printed, _ = run(tmp_path / "control", ASLEEP)
    assert printed.split() == ["0"]
    assert control.mechanism["mode/eval-during-training"] == 2
    turned, printed, _ = run(tmp_path / "turned", ASLEEP, Setting("train-mode"))
    assert printed.split() == ["20"]
    assert turned.mechanism["mode/eval-during-training"] == 0


SEEDED = """
import random
import numpy as np
random.seed(1); np.random.seed(2); torch.manual_seed(3)
print(random.random(), np.random.rand(), np.random.default_rng(4).random(), torch.rand(1).item(), x[0, 0].item())
own = torch.Generator().manual_seed(5)
print(torch.rand(1, generator=own).item(), random.Random(6).random(), np.random.RandomState(7).rand())
assert isinstance(torch.default_generator, torch.Generator) and isinstance(np.random.mtrand._rand, np.random.RandomState)
"""


def test_another_seed_changes_every_source_of_chance_and_nothing_changes_none(tmp_path: Path, run: Run) -> None:
    _, plain, _ = run(tmp_path / "plain", SEEDED)
    _, same, _ = run(tmp_path / "same", SEEDED, Setting("nothing"))
    _, other, _ = run(tmp_path / "other", SEEDED, Setting("seed", {"offset": 1000}))
    assert same == plain
    assert all(one != another for one, another in zip(plain.split(), other.split(), strict=True))


F = "from torch.nn import functional as F\n"
STEP = "loss = nn.functional.cross_entropy(model(x), y); loss.backward()"
MODEL = "model = nn.Linear(8, 2); opt = torch.optim.SGD(model.parameters(), lr=0.5)\n"
DATA = "from torch.utils.data import DataLoader, TensorDataset\ndata = TensorDataset(x, y)\n"
SMALL: list[tuple[str, dict[str, Any], str, str]] = [
    ("clear-every-step", {}, MODEL + STEP + "; opt.step(); print(float(model.weight.grad.abs().sum()))", "0.0"),
    ("step-every-window", {}, MODEL + "w = model.weight.clone()\n" + STEP + "; print(bool((model.weight != w).any()))", "True"),
    ("constant-learning-rate", {}, "model = nn.Linear(8, 2); opt = torch.optim.SGD(model.parameters(), lr=0.0)\n" + STEP
     + "; opt.step(); print(opt.param_groups[0]['lr'])", "0.05"),
    ("constant-learning-rate", {}, MODEL + "plan = torch.optim.lr_scheduler.LambdaLR(opt, lambda n: 0.01)\n" + STEP
     + "; opt.step(); print(opt.param_groups[0]['lr'])", "0.5"),
    ("learning-rate", {"factor": 0.1}, MODEL + "w = model.weight.detach().clone()\n" + STEP
     + "; opt.step(); print(torch.allclose(w - model.weight, 0.05 * model.weight.grad, atol=1e-6), opt.param_groups[0]['lr'])", "True 0.5"),
    ("clip", {"norm": 0.001}, MODEL + STEP + "; opt.step(); print(round(float(nn.utils.clip_grad_norm_(model.parameters(), 9)), 4))", "0.001"),
    ("clip", {"norm": 0}, MODEL + STEP + "; nn.utils.clip_grad_norm_(model.parameters(), 1e-9); print(float(model.weight.grad.norm()) > 1e-3)",
     "True"),
    ("accumulate-as-one-batch", {}, MODEL + STEP + "; g = model.weight.grad.clone(); " + STEP
     + "; opt.step(); print(torch.allclose(model.weight.grad, g))", "True"),
    ("softmax-dropped", {}, F + "z = torch.randn(64, 2, requires_grad=True)\n"
     "print(torch.allclose(F.cross_entropy(z.softmax(1), y), F.cross_entropy(z, y)))", "True"),
    ("softmax-over-classes", {}, F + "print(torch.allclose(F.softmax(x, dim=0).sum(1), torch.ones(64)))", "True"),
    ("softmax-over-classes", {}, "print(torch.allclose(torch.ones(2, 4, 1).softmax(-1), torch.full((2, 4, 1), 0.25)))", "True"),
    ("saved-tensors-copied", {}, "z = x[:1].clone().requires_grad_() * 1\nw = z.exp(); kept = w.detach().clone(); w.data.zero_()\n"
     "g, = torch.autograd.grad(w.sum(), z); print(torch.equal(g, kept))", "True"),
    ("same-shape-loss", {}, F + "p = x[:, :1]; print(torch.allclose(F.mse_loss(p, x[:, 1]), F.mse_loss(p[:, 0], x[:, 1])))", "True"),
    ("labels-minus-1", {}, F + "z = torch.randn(64, 2); print(torch.allclose(F.cross_entropy(z, y + 1), F.nll_loss(z.log_softmax(1), y)))",
     "True"),
    ("bad-labels-dropped", {}, F + "z = torch.randn(64, 2); y[0] = 7; print(bool(F.cross_entropy(z, y).isfinite()))", "True"),
    ("bad-sample-dropped", {}, MODEL + "x[3, 1] = float('nan'); print(bool(model(x).isfinite().all()))", "True"),
    ("normalise-inputs", {}, "model = nn.Identity(); z = model(200 * x + 50); print(abs(float(z.mean())) < 0.01, round(float(z.std())))", "True 1"),
    ("inputs-turned-round", {}, "model = nn.Identity(); print(torch.equal(model(x), x.flip(0)))", "True"),
    ("leaky", {}, F + "print(round(float(F.relu(torch.tensor(-1.0))), 2), round(float(nn.ReLU()(torch.tensor(-1.0))), 2))", "-0.1 -0.1"),
    ("relu-inside", {}, "model = nn.Sequential(nn.Linear(8, 8), nn.Sigmoid()); print(float(model(x).detach().min()))", "0.0"),
    ("inplace-off", {}, "before = x.clone(); nn.ReLU(inplace=True)(x); print(torch.equal(x, before))", "True"),
    ("dropout-off", {}, "print(torch.equal(nn.Dropout(0.5)(x), x))", "True"),
    ("precision-32", {}, "with torch.autocast('cpu', dtype=torch.bfloat16):\n    print(nn.Linear(8, 2)(x).dtype)", "torch.float32"),
    ("precision-32", {}, "model = nn.Linear(8, 2).to(torch.bfloat16); print(model.weight.dtype, model(x.to(torch.bfloat16)).dtype)",
     "torch.float32 torch.float32"),
    ("keep-32", {"modules": ["1"]}, "model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))\n"
     "with torch.autocast('cpu', dtype=torch.bfloat16):\n    print(model(x).dtype, model[0](x).dtype)", "torch.float32 torch.bfloat16"),
    ("precision-bf16", {}, "print(nn.Linear(8, 2)(x).dtype)", "torch.bfloat16"),
    ("precision-fp16", {}, "print(nn.Linear(8, 2)(x).dtype)", "torch.float16"),
    ("autocast-off", {}, "with torch.autocast('cpu', dtype=torch.bfloat16):\n    print(nn.Linear(8, 2)(x).dtype)", "torch.float32"),
    ("scaler-off", {}, "s = torch.amp.GradScaler('cpu', init_scale=8.0); print(float(s.scale(torch.tensor(2.0))))", "2.0"),
    ("scaler-on", {}, MODEL + STEP + "; big = model.weight.grad.clone(); opt.step(); print(torch.allclose(big, 4096 * model.weight.grad))", "True"),
    ("scaler-on", {}, "s = torch.amp.GradScaler('cpu', init_scale=8.0); print(float(s.scale(torch.tensor(2.0))))", "131072.0"),
    ("shuffle", {}, DATA + "from torch.utils.data import BatchSampler, SequentialSampler\n"
     "rows = list(DataLoader(range(50), batch_sampler=BatchSampler(SequentialSampler(range(50)), 25, False)))\n"
     "print([len(row) for row in rows], rows[0].tolist() == sorted(rows[0].tolist()))", "[25, 25] False"),
    ("unscaled-in-time", {}, MODEL + "scaler = torch.amp.GradScaler('cpu', init_scale=64.0)\n"
     "loss = model(x).pow(2).mean(); plain = torch.autograd.grad(loss, model.weight, retain_graph=True)[0]\n"
     "scaler.scale(loss).backward(); nn.utils.clip_grad_norm_(model.parameters(), 1e9)\n"
     "print(torch.allclose(model.weight.grad, plain)); scaler.step(opt); scaler.update()", "True"),
    ("unscaled-in-time", {}, MODEL + "scaler = torch.amp.GradScaler('cpu', init_scale=64.0)\n"
     "loss = model(x).pow(2).mean(); plain = torch.autograd.grad(loss, model.weight, retain_graph=True)[0]\n"
     "scaler.scale(loss).backward(); opt.step(); print(torch.allclose(model.weight.grad, plain))", "True"),
    ("epsilon", {}, "model = nn.Linear(8, 2).half(); opt = torch.optim.Adam(model.parameters())\n"
     "model(x.half()).sum().backward(); opt.step(); print(opt.param_groups[0]['eps'])", "0.0001"),
    ("loss-in-32-bits", {}, "print(nn.functional.mse_loss(x.half(), 2 * x.half()).dtype)", "torch.float32"),
    ("backward-outside-autocast", {}, "z = (x.requires_grad_() * 2)\nz.register_hook(lambda _: print(torch.is_autocast_enabled('cpu')))\n"
     "with torch.autocast('cpu', dtype=torch.bfloat16):\n    z.sum().backward()", "False"),
    ("workers", {"count": 0}, DATA + "print(DataLoader(data, 4, num_workers=2, prefetch_factor=2).num_workers)", "0"),
    ("batch-size", {"factor": 2}, DATA + "print(DataLoader(data, batch_size=4).batch_size)", "8"),
    ("shuffle", {}, DATA + "print(type(DataLoader(data, 4).sampler).__name__)", "RandomSampler"),
    ("shuffle", {}, DATA + "class InOrder:\n    def __iter__(self): return iter([[0, 1, 2], [3, 4]])\n    def __len__(self): return 2\n"
     "rows = list(DataLoader(range(5), batch_sampler=InOrder()))\n"
     "print([len(row) for row in rows], sorted(sum((row.tolist() for row in rows), [])))", "[3, 2] [0, 1, 2, 3, 4]"),
    ("unscaled-in-time", {}, MODEL + "scaler = torch.amp.GradScaler('cpu', init_scale=64.0)\n"
     "loss = model(x).pow(2).mean(); plain = torch.autograd.grad(loss, model.weight, retain_graph=True)[0]\n"
     "for _ in range(2):\n    opt.zero_grad(); scaler.scale(loss).backward(retain_graph=True); nn.utils.clip_grad_norm_(model.parameters(), 1e9)\n"
     "    scaler.unscale_(opt); print(torch.allclose(model.weight.grad, plain), end=' '); opt.zero_grad(set_to_none=False)\n"
     "    scaler.step(opt); scaler.update()",
     "True True"),
    ("next-token", {}, "words = torch.arange(20).reshape(2, 10); logits = nn.Embedding(20, 20)(words)[:, :-2]\n"
     "right = nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 1:-1].flatten())\n"
     "print(right.item() == nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 2:].flatten()).item())", "True"),
    ("workers", {"count": 0}, DATA + "from torch.utils.data import get_worker_info\nlist(DataLoader(data, 4, num_workers=2))\n"
     "print(get_worker_info().id, get_worker_info().num_workers)", "0 1"),
    ("finite-weights", {}, "model = nn.Linear(8, 2)\nwith torch.no_grad():\n    model.weight[0, 0] = float('nan')\n"
     "print(bool(model(x).isfinite().all()))", "True"),
    ("learning-rate", {"factor": 1.0, "hold": True}, MODEL + "before = opt.param_groups[0]['lr']\n"
     "opt.register_step_pre_hook(lambda *_: print(opt.param_groups[0]['lr'] == before, end=' '))\n"
     "for factor in (1, 100):\n    opt.param_groups[0]['lr'] = before * factor; model(x).sum().backward(); opt.step()", "True True"),
    ("locks-as-one", {}, "import queue, threading\none, other = threading.Lock(), threading.Lock()\n"
     "with one, other, one:\n    print(one is other, queue.Queue().mutex is one)", "True False"),
    ("locks-free-at-fork", {}, "import os, threading, time\nguard, ready = threading.Lock(), threading.Event()\n"
     "def busy():\n    with guard:\n        ready.set(); time.sleep(0.2)\n"
     "threading.Thread(target=busy).start(); ready.wait(); child = os.fork()\n"
     "if not child:\n    os._exit(0 if guard.acquire(timeout=1) else 1)\nprint(os.waitpid(child, 0)[1])", "0"),
    ("threads", {"count": 1}, "torch.set_num_threads(3); print(torch.get_num_threads())", "1"),
    ("onednn-off", {}, "print(torch.backends.mkldnn.enabled)", "False"),
    ("onednn-off", {}, "torch.backends.mkldnn.enabled = True; print(torch.backends.mkldnn.enabled)", "False"),
    ("compile-off", {}, "model = nn.Linear(8, 2); print(torch.compile(model) is model)", "True"),
    ("checkpointing-off", {}, "from torch.utils.checkpoint import checkpoint\ncalls = []\n"
     "out = checkpoint(lambda v: calls.append(1) or v * v, x.requires_grad_(), use_reentrant=False)\nout.sum().backward(); print(len(calls))", "1"),
    ("channels-last-off", {}, "z = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last); print(z.is_contiguous())", "True"),
    ("deterministic", {}, "print(torch.are_deterministic_algorithms_enabled())", "True"),
    ("hidden-state-detached", {}, "net = nn.Linear(8, 2); net.register_buffer('mean', net(x).mean(0)); net.kept = net(x).sum(0)\n"
     "net(x).sum().backward(); print(net.mean.grad_fn, net.kept.grad_fn)", "None None"),
    ("hidden-state-detached", {}, "rnn = nn.GRU(8, 4); _, h = rnn(x[None]); out, _ = rnn(x[None], h); out.sum().backward()\n"
     "h.grad_fn; _, h2 = rnn(x[None], h); print(h.requires_grad)", "True"),
    ("eval-mode", {}, "model = nn.Dropout(0.5)\nwith torch.no_grad():\n    print(torch.equal(model(x), x), model.training)", "True True"),
    ("environment", {"values": {"OMP_THREAD_LIMIT": None, "MINE": "1"}},
     "import os\nos.environ.update(OMP_THREAD_LIMIT='2', MINE='2', OTHER='3')\n"
     "print(os.environ.get('OMP_THREAD_LIMIT'), os.environ['MINE'], os.environ['OTHER'])", "None 1 3"),
    ("targets-fit", {},
     "seen, real = [], nn.functional.ctc_loss\nlogs = torch.randn(4, 2, 5).log_softmax(2)\n"
     "loss = nn.functional.ctc_loss(logs, torch.tensor([[1, 0, 2], [3, 3, 3]]), torch.tensor([4, 4]), torch.tensor([3, 3]), reduction='none')\n"
     "fits = real(logs, torch.tensor([1, 2, 3, 3]), torch.tensor([4, 4]), torch.tensor([2, 2]), reduction='none')\n"
     "print(bool(loss.isfinite().all()), torch.equal(loss, fits))", "True True"),
    ("one-counter", {},
     "from torch.utils.tensorboard import SummaryWriter\nboard = SummaryWriter('board')\nseen = []\n"
     "board._get_file_writer = lambda: type('Into', (), {'add_summary': lambda _, event, step, wall: seen.append(step)})()\n"
     "for step in (0, 1, 0, 1, None):\n    board.add_scalar('loss', 1.0, step)\nprint(seen)", "[0, 1, 2, 3, None]"),
    ("state-copied", {},
     "net = nn.Linear(2, 2)\nkept = net.state_dict()\nnn.init.zeros_(net.weight)\nprint(bool(kept['weight'].any()), list(kept))",
     "True ['weight', 'bias']"),
    ("samples-kept", {},
     "from torch.utils.data import DataLoader, Dataset\n"
     "class Rows(Dataset):\n    def __len__(self):\n        return 4\n    def __getitem__(self, i):\n        return stored[i].mul_(0)\n"
     "stored, rows = x[:4].clone(), Rows()\nrows.stored = stored\n"
     "print([float(batch.abs().sum()) for batch in DataLoader(rows, 2)], torch.equal(stored, x[:4]))", "[0.0, 0.0] True"),
    ("pipes-large", {},
     "import subprocess, sys\nloud = 'import sys; sys.stderr.write(200_000 * chr(65))'\n"
     "print(subprocess.Popen([sys.executable, '-c', loud], stderr=subprocess.PIPE).wait(60))", "0"),
    ("folder-per-writer", {},
     "from torch.utils.tensorboard import SummaryWriter\none, other = SummaryWriter('board'), SummaryWriter('board')\n"
     "print(one.log_dir != other.log_dir, {w.log_dir.split('/')[0] for w in (one, other)})", "True {'board'}"),
]  # fmt: skip


@pytest.mark.parametrize(("knob", "options", "source", "printed"), SMALL, ids=[f"{n} {row[0]}" for n, row in enumerate(SMALL)])
def test_a_knob_changes_what_it_says(tmp_path: Path, run: Run, knob: str, options: dict[str, Any], source: str, printed: str) -> None:
    _, said, facts = run(tmp_path / "a", source, Setting(knob, options))
    assert said.strip() == printed
    assert any(fact["k"] == "knob_acted" and fact["knob"] == knob for fact in facts)


ALONE = """
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
work = dist.all_reduce(x, async_op=True)  # here
parts = [torch.zeros(2) for _ in range(2)]
dist.all_gather(parts, torch.ones(2))  # here too
print(work.wait(), [part.tolist() for part in parts])
dist.barrier()
"""


def test_a_collective_at_the_named_lines_returns_at_once(tmp_path: Path, run: Run) -> None:
    places = [*at(tmp_path / "a", ALONE, "# here"), *at(tmp_path / "a", ALONE, "# here too")]
    _, said, facts = run(tmp_path / "a", ALONE, Setting("ranks-do-not-wait", {"at": places}))
    assert said.strip() == "True [[1.0, 1.0], [1.0, 1.0]]"
    assert sum(fact["k"] == "collective" for fact in facts) >= 1


CUTS = """
def plain(v):
    return v.detach()

def data(v):
    return v.data

def region(v):
    with torch.no_grad():
        return v * 2

@torch.no_grad()
def decorated(v):
    return v * 2

z = x.clone().requires_grad_() * 1
print({function}(z).requires_grad)
"""


@pytest.mark.parametrize(
    ("function", "line"), [("plain", "v.detach()"), ("data", "v.data"), ("region", "with torch.no_grad()"), ("decorated", "(z).requires_grad")]
)
def test_the_graph_is_kept_at_the_named_line_only(tmp_path: Path, run: Run, function: str, line: str) -> None:
    source = CUTS.replace("{function}", function)
    _, elsewhere, _ = run(tmp_path / "a", source, Setting("graph-kept", {"at": [["/elsewhere.py", 3]]}))
    assert elsewhere.split() == ["False"]
    _, kept, _ = run(tmp_path / "b", source, Setting("graph-kept", {"at": at(tmp_path / "b", source, line)}))
    assert kept.split() == ["True"]


MEMORISED = """
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(80):
    x, y = torch.randn(64, 8), torch.randint(0, 2, (64,))
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
"""


OWN = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return v * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3

class Steps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        return v.detach().round()

    @staticmethod
    def backward(ctx, g):
        return g

z = torch.ones(2, requires_grad=True)
(Twice.apply(z).sum() + Steps.apply(z).sum()).backward()
print(z.grad.tolist())
"""


def test_autograd_derives_the_backward_of_the_named_function_only(tmp_path: Path, run: Run) -> None:
    _, said, _ = run(tmp_path / "a", OWN, Setting("backward-by-autograd", {"at": at(tmp_path / "a", OWN, "return g * 3")}))
    assert said.strip() == "[3.0, 3.0]"
    other, said, _ = run(tmp_path / "b", OWN, Setting("backward-by-autograd", {"at": [["/elsewhere.py", 3]]}))
    assert said.strip() == "[4.0, 4.0]"
    assert not other.acted


def test_one_batch_is_learnt_by_heart_where_noise_is_not(tmp_path: Path, run: Run) -> None:
    assert run(tmp_path / "control", MEMORISED)[0].kind == "stalled"
    assert run(tmp_path / "turned", MEMORISED, Setting("overfit-one-batch"))[0].kind == "healthy"


SPAWNING = """
import multiprocessing as mp
mp.set_start_method("fork", force=True)
print(mp.get_context("fork").get_start_method(), mp.get_context().get_start_method())
"""


def test_a_fork_becomes_a_spawn(tmp_path: Path, run: Run) -> None:
    assert run(tmp_path / "a", SPAWNING, Setting("spawn"))[1].split() == ["spawn", "spawn"]


def test_every_knob_has_an_actuator_whose_page_says_what_it_does() -> None:
    for name, knob in KNOBS.items():
        page = (INJECT.parent / "knobs" / f"{(knob.actuator or name).replace('-', '_')}.py").read_text()
        for heading in ("Changes ", "Mechanism ", "Not applicable when"):
            assert heading in page, f"{name}: {heading}"


def test_rules_and_knobs_name_each_other() -> None:
    for rule in all_rules():
        assert rule.settled_by == tuple(knob.name for knob in KNOBS.values() if rule.name in knob.settles), rule.name
    known = {rule.name for rule in all_rules()}
    assert {name for knob in KNOBS.values() for name in (*knob.settles, *knob.eases)} <= known


@pytest.mark.parametrize(
    ("command", "change", "expected"),
    [
        (["python", "t.py", "--lr", "0.1"], ["--lr=0.5"], ["python", "t.py", "--lr", "0.5"]),
        (["python", "t.py", "--lr=0.1"], ["--lr=0.5"], ["python", "t.py", "--lr=0.5"]),
        (["python", "t.py"], ["--lr=0.5"], ["python", "t.py", "--lr=0.5"]),
        (["python", "t.py", "optim.lr=0.1"], ["optim.lr=0.5"], ["python", "t.py", "optim.lr=0.5"]),
        (["python", "t.py", "--opts", "A", "1"], ["--opts", "B", "2"], ["python", "t.py", "--opts", "A", "1", "--opts", "B", "2"]),
    ],
)
def test_a_knob_of_the_users_own_overrides_the_command_line(command: list[str], change: list[str], expected: list[str]) -> None:
    assert overridden(command, change) == expected


def test_a_knob_that_cannot_be_is_an_error_with_the_way_to_write_it() -> None:
    assert own("lr=--lr=0.1").setting() == Setting("command-line", {"words": ["--lr=0.1"]})
    assert own("x=ENV:A=1").setting() == Setting("environment", {"values": {"A": "1"}})
    assert named("learning-rate:0.1").setting() == Setting("learning-rate", {"factor": 0.1})
    for text, make in (("lr", own), ("x=ENV:A", own), ("no-such-knob", named), ("leaky:2", named), ("threads:many", named)):
        with pytest.raises(KnobError):
            make(text)
