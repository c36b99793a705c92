"""What programs do with torch besides training works as before: scripting, tracing, copying, saving, subclasses, children."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from side_by_side import both_ways
from trainsleuth.case.run_chart import RunChart

HERE = Path(__file__).parent
LOAD = (
    "import sys, torch; sys.path.insert(0, {here!r}); import as_before_program as p; sys.modules['__main__'].Classifier = p.Classifier; \
print(sorted(torch.load({file!r}, weights_only=False).state_dict()), [m for m in sys.modules if 'trainsleuth' in m])"
)


def test_torch_does_everything_as_before(tmp_path: Path) -> None:
    """Output, warnings, the traceback of the crash at the end, sys.path, the user's own sitecustomize: all the same."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("mine = True\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    program = str(HERE / "as_before_program.py")
    plain, watched, report = both_ways(
        lambda side: [sys.executable, program, str(tmp_path / f"{side}.pt")], tmp_path, environment=environment
    )
    assert "['sitecustomize']" in plain.stdout, plain.stderr
    assert watched.stdout == plain.stdout
    assert watched.stderr.replace("watched.pt", "plain.pt") == plain.stderr
    assert "as_before_program.py" in plain.stderr
    assert (plain.returncode, watched.returncode) == (1, 1)
    assert report["probes_off"] == []

    loading = LOAD.format(here=str(HERE), file=str(tmp_path / "watched.pt"))
    loaded = subprocess.run([sys.executable, "-c", loading], capture_output=True, text=True, timeout=120, check=False)
    assert "body.0.bias" in loaded.stdout, loaded.stderr
    assert loaded.stdout.rstrip().endswith("[]")


def test_forked_and_spawned_children_train_and_are_watched(tmp_path: Path) -> None:
    plain, watched, report = both_ways([sys.executable, str(HERE / "children_program.py"), "--import-first"], tmp_path)
    assert plain.stdout.count("0x") == 2, plain.stderr
    assert watched.stdout == plain.stdout
    assert report["probes_off"] == []
    chart = RunChart(tmp_path / "case" / "facts")
    chart.refresh()
    assert [(process.windows, process.ended) for process in chart.training()] == [(30, True), (30, True)]


def test_a_program_without_torch_is_left_alone(tmp_path: Path) -> None:
    plain, watched, report = both_ways([sys.executable, "-c", "import sys; print(sys.path, sys.argv)"], tmp_path)
    assert (watched.stdout, watched.stderr) == (plain.stdout, plain.stderr)
    assert report["verdict"] == "unsure"
    assert "did not import torch" in report["why_unsure"]


EVERY_KIND = """
import torch
from torch import nn

torch.manual_seed(0)
for kind in (torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128):
    weight = nn.Parameter(torch.randn(8, 4, dtype=kind))
    embedding = nn.Embedding(20, 4, sparse=True)
    optimizers = [torch.optim.SGD([weight], lr=0.01), torch.optim.SparseAdam(embedding.parameters(), lr=0.01)]
    for step in range(8):
        x = torch.randn(16, 8).to(kind)
        loss = (x @ weight).abs().float().mean() + embedding(torch.randint(20, (16,))).pow(2).mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    print(kind, float(loss).hex())
"""


def test_weights_of_every_number_type_are_looked_at(tmp_path: Path) -> None:
    plain, watched, report = both_ways([sys.executable, "-c", EVERY_KIND], tmp_path)
    assert plain.stdout.count("0x") == 5, plain.stderr
    assert watched.stdout == plain.stdout
    assert report["probes_off"] == []
    chart = RunChart(tmp_path / "case" / "facts")
    chart.refresh()
    looked_at = {parameter.dtype for process in chart.training() for parameter in process.parameters.values() if parameter.gradient}
    assert looked_at == {"float64", "bfloat16", "float16", "float32"}  # complex ones are left alone


NESTED = """
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)

class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return torch.softmax(self.one(x) * self.other(x), -1).to_padded_tensor(0.0)

model = Pool()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    sentences = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(5, 4)])
    loss = model(sentences).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(float(loss).hex())
"""


def test_tensors_without_a_shape_leave_every_probe_on(tmp_path: Path) -> None:
    plain, watched, report = both_ways([sys.executable, "-c", NESTED], tmp_path)
    assert plain.stdout.count("0x") == 1, plain.stderr
    assert watched.stdout == plain.stdout
    assert report["probes_off"] == []
