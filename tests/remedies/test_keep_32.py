"""Calls of modules that do not bear 16 bit are rewritten, whatever statement they stand in."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainsleuth import remedies
from trainsleuth.rules.kinds import Finding, Where

HEAD = "from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"


def finding(path: Path, line: int, module: str, inputs: str = "1 input") -> Finding:
    note = f"calls {module}: keep it in 32 bit (on cpu, {inputs})"
    return Finding("F1", "precision/accuracy-loss", "warning", "", where=[Where(str(path), line, "", note)])


@pytest.mark.parametrize(("line", "module", "rewritten"), [
    ("        return {'p': self.prob(x), 'b': self.head.step(self.prob(x), x)}", "Net.head.step", "'b': in_32_bit(self.head.step, self.prob(x), x)"),
    ("        return sum(layer(y) for layer, y in zip(self.layers, x))", "Net.layers.1", "in_32_bit(layer, y) for layer, y in zip("),
    ("        loss = self.criterion(x, max(1, len(x)))", "DBLoss", "loss = in_32_bit(self.criterion, x, max(1, len(x)))"),
    ("        loss = criterion(model(x), x)", "DBLoss", "loss = in_32_bit(criterion, model(x), x)"),
    ("        return self.blocks[2](x)", "Net.blocks.2", "return in_32_bit(self.blocks[2], x)"),
])  # fmt: skip
def test_the_call_of_the_module_is_found_in_its_statement(tmp_path: Path, line: str, module: str, rewritten: str) -> None:
    path = tmp_path / "model.py"
    path.write_text(HEAD + line + "\n")
    patch = remedies.propose(finding(path, 6, module, "2 inputs" if module == "DBLoss" else "1 input"))
    assert patch is not None
    assert patch.kind == "patch", patch.summary
    text = patch.files[path].decode()
    assert rewritten in text
    assert text.startswith("from torch import nn\nimport torch\n\n\ndef in_32_bit(module, *inputs):"), text
    compile(text, "model.py", "exec")


def test_structures_and_named_inputs_are_cast_inside(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("import torch\n" + HEAD + "        return self.criterion(x, scale=2)\n")
    patch = remedies.propose(finding(path, 7, "Loss", "2 inputs with structures"))
    assert patch is not None
    text = patch.files[path].decode()
    assert "def in_32_bit(module, *inputs, **named):" in text
    assert text.count("import torch\n") == 1
    assert "return in_32_bit(self.criterion, x, scale=2)" in text


def test_where_the_call_is_not_certain_there_is_advice(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(HEAD + "        return self.one(self.two(x))\n")
    patch = remedies.propose(finding(path, 6, "Loss"))
    assert patch is not None
    assert patch.kind == "advice"
    assert "not certain" in patch.summary


def test_a_finding_from_a_log_says_how_the_modules_are_found(tmp_path: Path) -> None:
    patch = remedies.propose(Finding("F1", "precision/accuracy-loss", "warning", "", where=[Where("train.log", 3)]))
    assert patch is not None
    assert patch.kind == "advice"
    assert "prove CASE --precision" in patch.summary
