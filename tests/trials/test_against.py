"""Two variants of a program, one against the other: capacity, and what they reach at equal budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from watching import ForkServer, needs_sandbox, trainsleuth

PROGRAM = """
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--rectifier", default="ReLU")
options = parser.parse_args()
torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(640, 12)
y = ((x[:, :3] > 0).long() * torch.tensor([1, 2, 4])).sum(1)
loader = DataLoader(TensorDataset(x[:512], y[:512]), 32, shuffle=True)
model = nn.Sequential(nn.Linear(12, options.width), getattr(nn, options.rectifier)(), nn.Linear(options.width, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
for epoch in range(8):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"val accuracy {(model(x[512:]).argmax(1) == y[512:]).float().mean():.4f}")
"""


def compared(server: ForkServer, folder: Path, variant: str, *words: str) -> tuple[Any, dict[str, Any]]:
    (folder / "work").mkdir()
    (folder / "work" / "train.py").write_text(PROGRAM)
    seen = server.run(folder / "work" / "train.py", folder / "case")
    assert seen.code == 0, seen.output
    done = trainsleuth("prove", str(folder / "case"), "--against", variant, *words, "--json", "proof.json", cwd=folder)
    report = json.loads((folder / "proof.json").read_text()) if (folder / "proof.json").is_file() else {}
    return done, report["against"][0] if report.get("against") else {}


@needs_sandbox
def test_a_model_that_cannot_learn_one_batch_lacks_capacity(server: ForkServer, tmp_path: Path) -> None:
    done, found = compared(server, tmp_path, "narrow=--width=1", "--seeds", "2")
    assert done.returncode == 1, done.stderr
    assert found["claim"] == "lacks capacity", done.stdout
    assert "the claim holds: narrow cannot learn one batch by heart, and the program as it is can" in done.stdout
    base, narrow = found["variants"]
    assert (base["parameters"], narrow["parameters"]) == (12 * 64 + 64 + 64 * 8 + 8, 12 + 1 + 8 + 8)
    assert found["metric"] == "val accuracy"
    assert base["ends"][0] > narrow["ends"][0]


@needs_sandbox
@pytest.mark.long
def test_a_popular_claim_is_refuted_when_both_learn_one_batch(server: ForkServer, tmp_path: Path) -> None:
    done, found = compared(server, tmp_path, "leaky=--rectifier=LeakyReLU", "--seeds", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["claim"] == "capacity suffices"
    assert "At equal budget no difference in val accuracy is shown" in done.stdout


def test_a_variant_is_named_like_a_knob(server: ForkServer, tmp_path: Path) -> None:
    done, _ = compared(server, tmp_path, "narrow")
    assert done.returncode == 2
    assert "narrow is no knob" in done.stderr
