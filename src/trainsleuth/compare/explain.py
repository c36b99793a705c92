"""Which difference explains the outcome: told only as far as the runs tell it, with the trial that would tell the rest."""

from __future__ import annotations

import difflib
import math
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

from trainsleuth.compare.options import as_knob
from trainsleuth.compare.run import Points, Run
from trainsleuth.trials.measure import ERRORS, learning

Status = Literal["explained", "suspected", "untold", "no difference"]
WORTH = 0.02  # of the loss: a smaller difference is none, however exact
T_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23}
GOOD = ("learns",)


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in all runs."""

    name: str
    values: tuple[str, ...]  # one per run; a dash where a run has none
    kind: Literal["given", "seen"]


@dataclass(frozen=True)
class Level:
    """A loss or a metric at the same step in all runs, with the error that its own noise leaves."""

    name: str
    at: int
    values: tuple[float | None, ...]
    errors: tuple[float | None, ...]
    seed_spread: float | None  # standard deviation between runs that differ in nothing but the seed


@dataclass(frozen=True)
class Explanation:
    status: Status
    text: str
    difference: str | None = None
    trials: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    runs: tuple[Run, ...]
    differences: tuple[Difference, ...]
    code: tuple[str, ...]
    levels: tuple[Level, ...]
    groups: tuple[tuple[int, ...], ...]  # runs that differ in nothing but the seed
    explanation: Explanation


def compare(runs: Sequence[Run]) -> Comparison:
    groups = _groups(runs)
    differences = _differences(runs)
    levels = _levels(runs, groups)
    return Comparison(
        tuple(runs), tuple(differences), tuple(_code(runs)), tuple(levels), groups, explain(runs, groups, differences, levels)
    )


def _groups(runs: Sequence[Run]) -> tuple[tuple[int, ...], ...]:
    found: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        found.setdefault(repr((sorted(run.given.items()), sorted(run.seen.items()))), []).append(index)
    return tuple(tuple(group) for group in found.values())


def _differences(runs: Sequence[Run]) -> list[Difference]:
    """Of what the runs were given; of what they were seen to use only what that does not say already."""
    found: list[Difference] = []
    for kind in ("given", "seen"):
        rows = [run.given if kind == "given" else run.seen for run in runs]
        for key in dict.fromkeys(key for row in rows for key in row):
            values = tuple(row.get(key, "–") for row in rows)
            if len(set(values)) > 1 and not any(_same(values, known.values) for known in found if known.kind != kind):
                found.append(Difference(key, values, "given" if kind == "given" else "seen"))
    return found


def _same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return all(left == right or _equal_numbers(left, right) for left, right in zip(one, other))


def _equal_numbers(left: str, right: str) -> bool:
    try:
        return math.isclose(float(left), float(right), rel_tol=1e-9)
    except ValueError:
        return False


def _code(runs: Sequence[Run]) -> list[str]:
    """What differs in the code, as far as it is known: between commits, and in the copies that the cases keep."""
    said = []
    first = runs[0]
    for other in runs[1:]:
        if first.git and other.git and first.git != other.git:
            said += [f"{first.name} → {other.name}: {line}" for line in _between_commits(first.cwd, first.git, other.git)]
        for name, path in first.sources.items():
            there = other.sources.get(name) or next(
                (known for key, known in other.sources.items() if Path(key).name == Path(name).name), None
            )
            if there is not None:
                plus, minus = _diff_stat(path, there)
                if plus or minus:
                    said.append(f"{Path(name).name}: {plus} lines added, {minus} taken out ({first.name} → {other.name})")
    return said


def _between_commits(cwd: Path, one: str, other: str) -> list[str]:
    try:
        done = subprocess.run(["git", "-C", str(cwd), "diff", "--stat=100", one, other, "--"], capture_output=True, text=True,
                              timeout=20, check=False)  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines if len(lines) <= 12 else [*lines[:10], "…", lines[-1]]


def _diff_stat(one: Path, other: Path) -> tuple[int, int]:
    try:
        texts = [path.read_text(encoding="utf-8", errors="replace").splitlines() for path in (one, other)]
    except OSError:
        return 0, 0
    lines = [
        line for line in difflib.unified_diff(texts[0], texts[1], lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))
    ]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _levels(runs: Sequence[Run], groups: Sequence[Sequence[int]]) -> list[Level]:
    found = []
    curves: list[tuple[str, list[Points]]] = [("loss", [run.loss for run in runs])]
    names = [name for name in runs[0].metrics if all(name in run.metrics for run in runs)]
    curves += [(name, [run.metrics[name] for run in runs]) for name in names]
    for name, each in curves:
        known = [points for points in each if points]
        if len(known) < 2:
            continue
        at = min(points[-1][0] for points in known)
        rows = [_level(points, at) if points else (None, None) for points in each]
        values = tuple(row[0] for row in rows)
        found.append(Level(name, at, values, tuple(row[1] for row in rows), _seed_spread(values, groups)))
    return found


def _level(points: Points, at: int) -> tuple[float | None, float | None]:
    measured = learning(points, at)
    if measured is not None:
        return measured.last, measured.last_error
    last = [mean for to, mean in points if to <= at]
    return (last[-1], None) if last else (None, None)


def _seed_spread(values: Sequence[float | None], groups: Sequence[Sequence[int]]) -> float | None:
    """Pooled over all groups of runs that differ in the seed alone."""
    squares, freedom = 0.0, 0
    for group in groups:
        own = [value for index in group if (value := values[index]) is not None]
        if len(own) > 1:
            mean = fmean(own)
            squares += sum((value - mean) ** 2 for value in own)
            freedom += len(own) - 1
    return math.sqrt(squares / freedom) if freedom else None


# -- which difference ------------------------------------------------------------------------------------------------


def explain(
    runs: Sequence[Run], groups: Sequence[Sequence[int]], differences: Sequence[Difference], levels: Sequence[Level]
) -> Explanation:
    given = [difference for difference in differences if difference.kind == "given"] or list(differences)
    if len(groups) == 1:
        return Explanation("no difference", _only_seeds(runs, levels))
    apart, words, sure = _apart(runs, groups, levels)
    if apart is None:
        return Explanation("no difference", words)
    separating = [difference for difference in given if _goes_with(difference, apart)]
    trials = tuple(_trial(runs, apart, difference) for difference in (separating or given)[:3])
    if not separating:
        return Explanation(
            "untold", f"{words} No single difference goes with that: it cannot be told from these runs.", None, trials
        )
    if len(separating) > 1:
        names = ", ".join(difference.name for difference in separating[:5])
        return Explanation(
            "untold", f"{words} {len(separating)} differences go with that ({names}): which of them it is cannot be told from these runs.",
            None, trials,
        )  # fmt: skip
    one = separating[0]
    only = "the only difference" if len(given) == 1 else f"the only one of {len(given)} differences that goes with it in all runs"
    values = f"{_value(runs, apart, one, worse=True)} → {_value(runs, apart, one, worse=False)}"
    if sure:
        return Explanation("explained", f"{words} {one.name} ({values}) is {only}.", one.name, trials)
    return Explanation(
        "suspected", f"{words} {one.name} ({values}) is {only}, but one run each cannot be told from chance.", one.name, trials
    )


def _only_seeds(runs: Sequence[Run], levels: Sequence[Level]) -> str:
    loss = next((level for level in levels if level.name == "loss"), None)
    spread = (
        f"; the loss at step {loss.at:,} differs by {loss.seed_spread:.4g} (standard deviation)"
        if loss and loss.seed_spread
        else ""
    )
    same = "the seed alone" if len({run.seeds for run in runs}) > 1 else "nothing that is known"
    return f"The runs differ in {same}{spread}."


def _apart(runs: Sequence[Run], groups: Sequence[Sequence[int]], levels: Sequence[Level]) -> tuple[list[int] | None, str, bool]:
    """The side of each run (0 worse, 1 better), the words for it, and whether chance is excluded; None where they do not differ."""
    outcomes = [run.outcome for run in runs]
    if len({outcome in GOOD for outcome in outcomes}) > 1:
        sides = [int(outcome in GOOD) for outcome in outcomes]
        each = [sum(side == wanted for side in sides) for wanted in (0, 1)]
        words = f"{_list(runs, sides, 0)}: {_said(runs, sides, 0)}; {_list(runs, sides, 1)}: {_said(runs, sides, 1)}."
        return sides, words, min(each) >= 2
    loss = next((level for level in levels if level.name == "loss"), None)
    if loss is None or any(value is None for value in loss.values):
        return None, "The outcomes are the same, and there are too few values of the loss to compare.", False
    means = [fmean(value for index in group if (value := loss.values[index]) is not None) for group in groups]
    order = sorted(range(len(groups)), key=lambda index: means[index])
    gaps = [means[order[index + 1]] - means[order[index]] for index in range(len(order) - 1)]
    cut = max(range(len(gaps)), key=lambda index: gaps[index])
    gap, low = gaps[cut], order[: cut + 1]
    noise, sure = _noise(loss, groups, order[cut], order[cut + 1])
    if gap <= noise or gap <= WORTH * abs(means[order[cut + 1]]):
        about = f"{noise:.4g}, from seeds" if sure else f"{noise:.4g}, within the runs"
        return None, f"The losses at step {loss.at:,} do not differ beyond their noise (gap {gap:.4g}, noise {about}).", sure
    better = {index for group in low for index in groups[group]}
    sides = [int(index in better) for index in range(len(runs))]
    words = f"At step {loss.at:,} the loss of {_list(runs, sides, 1)} is lower by {gap:.4g} than that of {_list(runs, sides, 0)}"
    words += (
        f" (noise {noise:.4g}, from seeds)."
        if sure
        else f" (noise within the runs {noise:.4g}; what another seed does is not known)."
    )
    return sides, words, sure


def _noise(loss: Level, groups: Sequence[Sequence[int]], one: int, other: int) -> tuple[float, bool]:
    """What a gap must exceed, and whether it comes from seeds: at 95 %, or from the noise within the two runs."""
    freedom = sum(len(group) - 1 for group in groups)
    if loss.seed_spread is not None and freedom:
        width = T_95.get(freedom, 2.1)
        return width * loss.seed_spread * math.sqrt(1 / len(groups[one]) + 1 / len(groups[other])), True
    errors = [loss.errors[index] or 0.0 for group in (groups[one], groups[other]) for index in group]
    return ERRORS * math.sqrt(sum(error**2 for error in errors)), False


def _goes_with(difference: Difference, sides: Sequence[int]) -> bool:
    """Whether no value is found on both sides."""
    worse = {value for value, side in zip(difference.values, sides) if side == 0}
    return not worse & {value for value, side in zip(difference.values, sides) if side == 1}


def _list(runs: Sequence[Run], sides: Sequence[int], wanted: int) -> str:
    return ", ".join(run.name for run, side in zip(runs, sides) if side == wanted)


def _said(runs: Sequence[Run], sides: Sequence[int], wanted: int) -> str:
    words = dict.fromkeys(run.outcome for run, side in zip(runs, sides) if side == wanted)
    return " / ".join(words)


def _value(runs: Sequence[Run], sides: Sequence[int], difference: Difference, *, worse: bool) -> str:
    wanted = 0 if worse else 1
    values = dict.fromkeys(value for value, side in zip(difference.values, sides) if side == wanted)
    return " or ".join(values)


def _trial(runs: Sequence[Run], sides: Sequence[int], difference: Difference) -> str:
    """What would tell: the worse run again, with the better one's value of this alone."""
    worse = next(index for index, side in enumerate(sides) if side == 0)
    better = next(index for index, side in enumerate(sides) if side == 1)
    value = difference.values[better]
    case = runs[worse].name.partition(":")[0]
    if difference.kind == "given" and value == "–":
        return f"run {case} again without {difference.name}"
    in_hydra_style = any(word.startswith(f"{difference.name}=") for word in runs[worse].command)
    if difference.kind == "given" and (difference.name.startswith("-") or difference.name.isupper() or in_hydra_style):
        return f"trainsleuth prove {shlex.quote(case)} --knob {shlex.quote(as_knob(difference.name, value))}"
    if difference.name == "code":
        return f"run the command of {case} with the code of {runs[better].name}"
    if difference.kind == "seen":
        return f"change {difference.name} of {case} to {value}, and nothing else"
    return f"run the command of {case} where {difference.name} is {value}"
