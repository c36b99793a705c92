"""Runs the case studies of the field reports with each of their switches, and prints what TrainSleuth said of each.

    python zoo/switches.py [PATTERN…] [--jobs 2]

A setting passes when the first finding is the rule that zoo/reports/*/switches.toml names, in a file of that name; one that is healthy
when nothing above a note is said. Ends with `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib
from check import table

REPORTS = Path(__file__).resolve().parent / "reports"
LIMIT = 400


@dataclass(frozen=True)
class Setting:
    study: Path
    opts: tuple[str, ...]
    rule: str
    file: str

    @property
    def name(self) -> str:
        return f"{self.study.name} {' '.join(self.opts) or '(as it is)'}"


def settings(patterns: list[str]) -> list[Setting]:
    found = []
    for toml in sorted(REPORTS.glob("*/switches.toml")):
        for row in tomllib.loads(toml.read_text(encoding="utf-8"))["setting"]:
            found.append(Setting(toml.parent, tuple(row["opts"]), row["rule"], row.get("file", "")))
    return [each for each in found if not patterns or any(fnmatch.fnmatch(each.name, f"*{pattern}*") for pattern in patterns)]


def observe(setting: Setting) -> tuple[bool, str, float]:
    with tempfile.TemporaryDirectory(prefix="trainsleuth-zoo-") as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "trainsleuth", "run", "--case", f"{folder}/case", "--quiet", "--json", str(report),
                   "--", sys.executable, str(setting.study / "main.py")]  # fmt: skip
        if setting.opts:
            command += ["--opts", *setting.opts]
        began = time.monotonic()
        try:
            subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False)
            passed, words = judge(setting, json.loads(report.read_text(encoding="utf-8")))
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            passed, words = False, f"could not be run: {problem}"
        return passed, words, time.monotonic() - began


def judge(setting: Setting, report: dict[str, Any]) -> tuple[bool, str]:
    loud = [finding for finding in report["findings"] if finding["severity"] != "note"]
    if not loud:
        return not setting.rule, "silent"
    first = loud[0]
    where = [f"{place['file']}:{place['line']}" for place in first["where"]]
    right = first["rule"] == setting.rule and any(setting.file in place for place in where)
    named = next((place for place in where if setting.file in place), where[0] if where else "no line")
    return right, f"{first['rule']} at {named.removeprefix(str(setting.study) + '/')}: {first['title']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    return table(settings(options.patterns), observe, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
