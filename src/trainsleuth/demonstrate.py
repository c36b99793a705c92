"""The demo: the case study of the first field report, from the flat loss to the verified patch, with the real commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

PROGRAM = "001-xclip"
SICK = ["main.py", "--config", "configs/xclip-12.yaml", "--opts", "SWITCH.FREEZE_TOO_MUCH", "true"]
STEPS = "30"  # per trial: enough for it to show, and the demo is over in a minute or so
BARS = " ▁▂▃▄▅▆▇█"


def demonstrate(keep: bool) -> int:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    try:
        import torch  # noqa: F401
        import yaml  # noqa: F401
    except ImportError as missing:
        console.print(
            f"trainsleuth: the demo trains a model; it needs torch, numpy and PyYAML ({missing.name} is not installed)."
        )
        return 2
    source = find_program()
    if source is None:
        console.print("trainsleuth: the demo's program is not part of this installation.")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="trainsleuth-demo-"))
    try:
        shutil.copytree(source, folder / PROGRAM, ignore=shutil.ignore_patterns("__pycache__"))
        return _story(console, folder / PROGRAM)
    finally:
        if keep:
            console.print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def find_program() -> Path | None:
    """In the wheel beside this file, in a checkout below zoo/."""
    here = Path(__file__).resolve().parent
    for folder in (here / "demo_programs" / PROGRAM, here.parent.parent / "zoo" / "reports" / PROGRAM):
        if (folder / "main.py").is_file():
            return folder
    return None


def _story(console: Console, folder: Path) -> int:
    console.print(Text("A video classifier, twelve classes. Its owner wrote: «the loss does not move».\n", style="bold"))
    _call(console, folder, "run", "--case", "case", *SICK)
    report = _report(folder)
    if report is None or not report["findings"]:
        console.print("trainsleuth: the demo's program did not show its sickness here; please report this.")
        return 2
    console.print(
        Text("Is that so? The program runs again with only that changed, beside a control and a placebo.\n", style="bold")
    )
    _call(console, folder, "prove", "case", "F1", "--windows", STEPS)
    console.print(Text("Then the patch, tried before it is shown.\n", style="bold"))
    _call(console, folder, "fix", "case", "F1", "--verify", "--windows", STEPS)
    report = _report(folder) or report
    _curves(console, report)
    finding = report["findings"][0]
    proved = any(cause["status"] == "confirmed" for cause in finding["causes"])
    verified = any(remedy["verified"] for remedy in finding["remedies"])
    return 0 if proved and verified else 1


def _call(console: Console, folder: Path, *words: str) -> None:
    console.print(Text(f"$ trainsleuth {' '.join(words)}", style="bold cyan"))
    environment = {**os.environ, "VIRTUAL_ENV": str(Path(sys.prefix)), "COLUMNS": str(console.width)}
    subprocess.run([sys.executable, "-m", "trainsleuth", *words], cwd=folder, env=environment, check=False)
    console.print()


def _report(folder: Path) -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = json.loads((folder / "case" / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return report


def _curves(console: Console, report: dict[str, Any]) -> None:
    """The loss of the control and of the patched program, on one scale."""
    by_role = {trial["role"]: trial for trial in report["trials"] if trial.get("curve")}
    pair = [(label, by_role[role]["curve"]) for label, role in (("before", "control"), ("after", "remedy")) if role in by_role]
    values = [value for _, curve in pair for _, value in curve]
    if len(pair) < 2 or not values:
        return
    least, most = min(values), max(values)
    console.print(Text("The loss, step by step:", style="bold"))
    for label, curve in pair:
        heights = [round((value - least) / ((most - least) or 1) * (len(BARS) - 1)) for _, value in curve]
        style = "red" if label == "before" else "green"
        line = Text(f"  {label:<8}")
        line.append("".join(BARS[max(1, height)] for height in heights), style=style)
        line.append(f"  {curve[0][1]:.4f} → {curve[-1][1]:.4f}")
        console.print(line, soft_wrap=True)
    console.print()
