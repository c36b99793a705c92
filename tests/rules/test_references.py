"""What is kept as a reference changes with what it refers to: states that bring nothing back, samples that wear away, layers out of sight."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from watching import Watched

Run = Callable[..., Watched]


def line_of(seen: Watched, note: str) -> str:
    return next(place["code"] for place in seen.findings[0]["where"] if note in place["note"])


KEPT = """
import copy
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
average = copy.deepcopy(net.state_dict())
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(60):
    x = torch.randn(32, 8)
    loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 10:
        KEEP
        net.load_state_dict(average)
        net(x)
        net.load_state_dict(kept)
"""


@pytest.mark.parametrize("keep", ["kept = net.state_dict()", "kept = dict(net.state_dict())"])
def test_weights_that_are_kept_without_a_copy_bring_nothing_back(run_source: Run, keep: str) -> None:
    seen = run_source(KEPT.replace("KEEP", keep))
    assert seen.rules[:1] == ["checkpoint/restores-nothing"], seen.why()
    assert line_of(seen, "keeps references") == keep
    assert line_of(seen, "into itself") == "net.load_state_dict(kept)"


@pytest.mark.parametrize("keep", ["kept = copy.deepcopy(net.state_dict())", "kept = {k: v.clone() for k, v in net.state_dict().items()}"])
def test_weights_that_are_kept_as_a_copy_are_no_finding(run_source: Run, keep: str) -> None:
    seen = run_source(KEPT.replace("KEEP", keep))
    assert seen.rules == [], seen.why()


def test_a_state_that_is_loaded_unchanged_is_no_finding(run_source: Run) -> None:
    seen = run_source(KEPT.replace("net.load_state_dict(average)", "pass").replace("KEEP", "kept = net.state_dict()"))
    assert seen.rules == [], seen.why()


STORE = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(0)


class Signals(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.y = rng.integers(0, 3, 90)
        self.x = (rng.normal(size=(90, 12)) + self.y[:, None]).astype(np.float32)
        self.reads = np.zeros((90, 1))
        self.ready = [False] * 90

    def __len__(self):
        return 90

    def __getitem__(self, i):
        self.reads[i] += 1
        READ
        return x, self.y[i]


net = nn.Linear(12, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
loader = DataLoader(SIGNALS, batch_size=16, shuffle=True)
for _ in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize("data", ["Signals()", "random_split(Signals(), [80, 10])[0]"])
def test_a_sample_that_reading_changes_where_it_is_stored(run_source: Run, data: str) -> None:
    seen = run_source(STORE.replace("READ", "x = torch.from_numpy(self.x[i]).mul_(0.9)").replace("SIGNALS", data))
    assert seen.rules[:1] == ["data/samples-rewritten"], seen.why()
    assert line_of(seen, "is read here") == "def __getitem__(self, i):"
    assert "kept in `x` (array)" in seen.findings[0]["evidence"][0]


@pytest.mark.parametrize("read", [
    "x = torch.from_numpy(self.x[i].copy()).mul_(0.9)",
    "x = torch.from_numpy(self.x[i]) * 0.9",
    "self.x[i] -= 0 if self.ready[i] else 1.0; self.ready[i] = True; x = torch.from_numpy(self.x[i])",
])  # fmt: skip
def test_copies_and_samples_that_are_prepared_once_are_no_finding(run_source: Run, read: str) -> None:
    seen = run_source(STORE.replace("READ", read).replace("SIGNALS", "Signals()"))
    assert seen.rules == [], seen.why()


PARTS = """
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 3)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.3)
for _ in range(60):
    CLEAR
    x = torch.randn(32, 8)
    loss = nn.functional.cross_entropy(head(body(x)), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
"""


def test_gradients_that_are_cleared_in_part(run_source: Run) -> None:
    seen = run_source(PARTS.replace("CLEAR", "head.zero_grad()"))
    assert seen.rules[:1] == ["stall/gradients-never-cleared"], seen.why()
    assert "2 parameters" in seen.findings[0]["title"]
    assert line_of(seen, "every earlier one") == "optimizer.step()"


@pytest.mark.parametrize("clear", [
    "body.zero_grad(); head.zero_grad()", "optimizer.zero_grad(set_to_none=False)",
    "[p.grad.zero_() for g in optimizer.param_groups for p in g['params'] if p.grad is not None]",
])  # fmt: skip
def test_gradients_that_are_cleared_part_by_part_are_no_finding(run_source: Run, clear: str) -> None:
    seen = run_source(PARTS.replace("CLEAR", clear))
    assert seen.rules == [], seen.why()


OBJECT = """
import torch
from torch import nn

torch.manual_seed(0)


class Chain:
    def __init__(self, steps):
        self.steps = steps

    def run(self, x):
        for step in self.steps:
            x = step(x).relu()
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.chain = Chain([nn.Linear(8, 8) for _ in range(2)])
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.chain.run(x))


net = Net()
optimizer = torch.optim.Adam([*net.parameters()MORE], lr=0.02)
for _ in range(100):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    optimizer.step()
"""


def test_layers_that_a_plain_object_keeps(run_source: Run) -> None:
    seen = run_source(OBJECT.replace("MORE", ""))
    assert seen.rules[:1] == ["stall/unregistered-modules"], seen.why()
    assert "chain.steps[0] (Linear)" in seen.findings[0]["evidence"][0]


def test_layers_of_a_plain_object_that_are_trained_are_no_finding(run_source: Run) -> None:
    seen = run_source(OBJECT.replace("MORE", ", *(p for step in net.chain.steps for p in step.parameters())"))
    assert seen.rules == [], seen.why()


EXCHANGED = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
with torch.no_grad():
    SETTLE
for _ in range(60):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    optimizer.step()
"""


def test_a_parameter_that_is_exchanged_behind_the_optimizer(run_source: Run) -> None:
    seen = run_source(EXCHANGED.replace("SETTLE", "net[0].weight = nn.Parameter(net[0].weight * 2)"))
    assert seen.rules[:1] == ["stall/params-not-in-optimizer"], seen.why()
    assert line_of(seen, "in the place of one of the same shape") == "net[0].weight = nn.Parameter(net[0].weight * 2)"


def test_a_parameter_that_is_written_to_is_no_finding(run_source: Run) -> None:
    seen = run_source(EXCHANGED.replace("SETTLE", "net[0].weight.copy_(net[0].weight * 2)"))
    assert seen.rules == [], seen.why()


UNSTEPPED = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
plan = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: FACTOR)
for _ in range(60):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    optimizer.step()
    STEP
"""


def test_a_warm_up_that_nobody_steps(run_source: Run) -> None:
    seen = run_source(UNSTEPPED.replace("FACTOR", "min(1, (step + 1) / 100)").replace("STEP", "pass"))
    assert seen.rules[:1] == ["schedule/never-stepped"], seen.why()
    assert line_of(seen, "is never stepped").startswith("plan =")


@pytest.mark.parametrize(("factor", "step"), [("min(1, (step + 1) / 20)", "plan.step()"), ("1 / (1 + step)", "pass")])
def test_a_schedule_that_is_stepped_or_begins_at_its_full_rate_is_no_finding(run_source: Run, factor: str, step: str) -> None:
    seen = run_source(UNSTEPPED.replace("FACTOR", factor).replace("STEP", step))
    assert seen.rules == [], seen.why()


MASKED = """
import torch
from torch import nn

torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(20, 16, padding_idx=0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder, self.out = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(16, 2)

    def forward(self, tokens):
        real = tokens != 0
        hidden = self.encoder(self.tokens(tokens), src_key_padding_mask=MASK)
        return self.out(hidden[:, 0])


net = Reader()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(60):
    tokens = torch.randint(1, 20, (32, 10))
    lengths = torch.randint(3, 8, (32,))
    tokens[torch.arange(10) >= lengths[:, None]] = 0
    loss = nn.functional.cross_entropy(net(tokens), (tokens == 7).any(1).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_padding_mask_the_wrong_way_round(run_source: Run) -> None:
    seen = run_source(MASKED.replace("MASK", "real"))
    assert seen.rules[:1] == ["stall/mask-inverted"], seen.why()
    assert "src_key_padding_mask=real" in line_of(seen, "this mask hides")


def test_a_padding_mask_that_hides_the_padding_is_no_finding(run_source: Run) -> None:
    seen = run_source(MASKED.replace("MASK", "~real"))
    assert "stall/mask-inverted" not in seen.rules, seen.why()
