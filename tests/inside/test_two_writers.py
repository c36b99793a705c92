"""Several processes that log to one folder are found; each to its own folder is healthy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("two_writers_program.py")


@pytest.mark.parametrize(("how", "rules"), [("shared", ["logging/two-writers"]), ("own", [])])
def test_two_processes(how: str, rules: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trainsleuth", "run", "--quiet", "--case", str(tmp_path / "case"), "--json", str(tmp_path / "report.json"),
               "--", sys.executable, str(PROGRAM), str(tmp_path / "runs"), how]  # fmt: skip
    subprocess.run(command, check=False, timeout=200, cwd=tmp_path)
    findings = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert [finding["rule"] for finding in findings] == rules
    for finding in findings:
        assert finding["where"][0]["file"].endswith(PROGRAM.name)
