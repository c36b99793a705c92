"""Runs the zoo under TrainSleuth and prints what it said: every sick program, its cured twin, every healthy program.

    python zoo/check.py [PATTERN…] [--jobs 2] [--rewritten]

A sick program passes when its rule is the first finding and names a guilty line; where watching cannot see that line, the one
where the fault shows (`seen_at` in case.toml) counts, and the table says so. A cured or healthy one when nothing above a
note is said. With --rewritten every sick program is also rewritten by machine (tests/rules/rewriting.py) so that it looks different
and computes the same; it passes when the finding stays the same. Programs that stand still (zoo/hang, zoo/ranks) are ended after
their report, and the table says how long after the threshold it came; those of zoo/alive only look as if they did. What needs a
library that is not installed (`needs` in case.toml) is left out. Ends with `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import tomllib

ZOO = Path(__file__).resolve().parent
LIMIT = 180
REWRITING = ZOO.parent / "tests" / "rules"
STANDING = ("hang", "ranks", "alive")
HANG_AFTER = 5


@dataclass(frozen=True)
class Specimen:
    name: str
    script: Path
    expected: dict[str, Any] | None  # None: nothing above a note

    @property
    def about_standstills(self) -> bool:
        return about_standstills(self.script)


def about_standstills(script: Path) -> bool:
    return any(family in script.parts for family in STANDING)


def specimens(patterns: list[str]) -> list[Specimen]:
    found = []
    for toml in sorted(ZOO.glob("*/*/case.toml")):
        about = tomllib.loads(toml.read_text(encoding="utf-8"))
        if "needs" in about and importlib.util.find_spec(about["needs"]) is None:
            continue
        name = f"{toml.parent.parent.name}/{toml.parent.name}"
        found.append(Specimen(f"{name} sick", toml.parent / "sick.py", about))
        found.append(Specimen(f"{name} cured", toml.parent / "cured.py", None))
    for family in ("healthy", "alive", "ranks"):
        found += [Specimen(f"{family}/{path.stem}", path, None) for path in sorted((ZOO / family).glob("*.py"))]
    return [s for s in found if not patterns or any(fnmatch.fnmatch(s.name, f"*{pattern}*") for pattern in patterns)]


def observe(script: Path, folder: Path, *options: str) -> tuple[dict[str, Any], float]:
    """The report of one program run under observation, and the seconds it took."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "trainsleuth", "run", "--case", str(folder / "case"), "--quiet", "--json", str(report),
               *options, "--", sys.executable, str(script)]  # fmt: skip
    one_thread = {} if about_standstills(script) else {"OMP_NUM_THREADS": "1"}  # several programs with all cores each wait for one another
    began = time.monotonic()
    with open(folder / "printed.txt", "wb") as printed:
        subprocess.run(
            command, env=one_thread | os.environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.DEVNULL, timeout=LIMIT, check=False
        )
    return json.loads(report.read_text(encoding="utf-8")), time.monotonic() - began


def noticed_after(folder: Path) -> str:
    """How many seconds after the threshold the standstill was on record, with its stacks."""
    try:
        lines = (folder / "case" / "facts" / "supervisor.jsonl").read_text(encoding="utf-8").splitlines()
        first = json.loads(lines[0])
        return f"  [{first['t'] - first['since'] - HANG_AFTER:.1f} s after the threshold]"
    except (OSError, ValueError, KeyError, IndexError):
        return ""


def judge(specimen: Specimen, report: dict[str, Any]) -> tuple[bool, str]:
    findings = report["findings"]
    loud = [finding for finding in findings if finding["severity"] != "note"]
    if report["probes_off"]:
        return False, f"probe off: {report['probes_off'][0]['probe']}: {report['probes_off'][0]['why']}"
    if specimen.expected is None:
        if report["verdict"] == "unsure":
            return False, f"unsure: {report['why_unsure']}"
        return not loud, "silent" if not loud else "; ".join(f"{f['rule']} ({f['title'][:70]})" for f in loud)
    if not findings:
        return False, "nothing found"
    behind = specimen.expected.get("behind", [])  # what is true as well, and worse
    first = next((finding for finding in findings if finding["rule"] not in behind), findings[0])
    if first["rule"] != specimen.expected["rule"]:
        return False, f"first is {first['rule']}; all: {', '.join(f['rule'] for f in findings)}"
    guilty, seen_at = (_folded(specimen.expected.get(key, [])) for key in ("guilty", "seen_at"))
    named = _folded(where["code"] for where in first["where"])
    if not any(code in guilty + seen_at for code in named):
        return False, f"names {named}, not {guilty}"
    exact = "" if any(code in guilty for code in named) else " (where it is seen, not where it is made)"
    return True, f"{first['severity']} at step {first['step']}{exact}: {first['title'][:80]}"


def _folded(lines: Iterable[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


def judge_rewritten(specimen: Specimen, folder: Path) -> tuple[bool, str]:
    """Whether the program, disguised and with its model wrapped, prints the same and gets the finding of the original."""
    from rewriting import disguise, what_differs, without_lines_of_code, wrap

    source = specimen.script.read_text(encoding="utf-8")
    original, output = _observe_in(folder / "original", specimen.script)
    for beside in specimen.script.parent.iterdir():  # what it imports and reads
        (folder / beside.name).symlink_to(beside)
    words = []
    for rewrite in (disguise, wrap):
        rewritten = rewrite(source)
        if not rewritten.applied:
            continue
        script = folder / f"{rewrite.__name__}.py"
        script.write_text(rewritten.source, encoding="utf-8")
        report, printed = _observe_in(folder / rewrite.__name__, script)
        if without_lines_of_code(printed) != without_lines_of_code(output):
            return False, f"{rewrite.__name__}: no longer the same program"
        difference = what_differs(original["findings"], rewritten, report["findings"])
        if difference is not None:
            return False, f"{rewrite.__name__}: {difference}"
        words.append(", ".join(rewritten.applied))
    return True, "; ".join(words)


def _observe_in(folder: Path, script: Path) -> tuple[dict[str, Any], str]:
    folder.mkdir()
    report, _ = observe(script, folder)
    return report, (folder / "printed.txt").read_text(encoding="utf-8", errors="replace")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2)))
    parser.add_argument("--rewritten", action="store_true", help="does the finding stay when a sick program is rewritten?")
    options = parser.parse_args()
    chosen = specimens(options.patterns)
    if options.rewritten:
        sys.path.insert(0, str(REWRITING))
        chosen = [specimen for specimen in chosen if specimen.expected is not None and not specimen.about_standstills]

    def one(specimen: Specimen) -> tuple[bool, str, float]:
        with tempfile.TemporaryDirectory(prefix="trainsleuth-zoo-") as folder:
            try:
                if options.rewritten:
                    began = time.monotonic()
                    return *judge_rewritten(specimen, Path(folder)), time.monotonic() - began
                options_of = ("--hang-after", str(HANG_AFTER), "--on-hang", "kill") if specimen.about_standstills else ()
                report, seconds = observe(specimen.script, Path(folder), *options_of)
                latency = noticed_after(Path(folder)) if specimen.about_standstills else ""
            except (OSError, ValueError, subprocess.SubprocessError) as problem:
                return False, f"could not be run: {problem}", 0.0
        passed, words = judge(specimen, report)
        return passed, words + latency, seconds

    return table(chosen, one, options.jobs)


class Named(Protocol):
    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=Named)


def table(chosen: Sequence[Row], one: Callable[[Row], tuple[bool, str, float]], jobs: int) -> int:
    """A line for each as it ends, in their order, and `N passed, N failed`; 1 if any failed."""
    failed = 0
    width = max((len(row.name) for row in chosen), default=0)
    with ThreadPoolExecutor(jobs) as pool:
        for row, (passed, words, seconds) in zip(chosen, pool.map(one, chosen)):
            failed += not passed
            print(f"{'ok  ' if passed else 'FAIL'}  {row.name:<{width}}  {seconds:5.1f} s  {words}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
