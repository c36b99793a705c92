"""A comparison as rows of text, as Markdown and as JSON; the terminal prints the same rows as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trainsleuth.compare import Comparison

SCHEMA = 1
Row = tuple[str, list[str]]


def sections(comparison: Comparison) -> Iterator[tuple[str, list[Row]]]:
    """Headings, each with its rows: a label, and a cell for each run."""
    runs = comparison.runs
    yield (
        "Outcome",
        [
            ("outcome", [run.outcome for run in runs]),
            ("findings", [", ".join(run.findings) or "none" for run in runs]),
            ("steps", [f"{run.steps:,}" for run in runs]),
            ("seed", [", ".join(run.seeds) or "not set" for run in runs]),
        ],
    )
    for kind, heading in (
        ("given", "What differs in what they were given"),
        ("seen", "What differs in what they were seen to use"),
    ):
        rows: list[Row] = [(d.name, list(d.values)) for d in comparison.differences if d.kind == kind]
        if rows:
            yield heading, rows
    levels = [_level(comparison, index) for index in range(len(comparison.levels))]
    if levels:
        yield "At equal steps", levels
    yield (
        "Speed",
        [
            ("steps per second", [_number(run.speed.steps_per_second, "{:.3g}") for run in runs]),
            ("waiting for data", [_number(run.speed.loader_wait, "{:.0%}") for run in runs]),
            ("seconds in all", [_number(run.speed.seconds, "{:.1f}") for run in runs]),
        ],
    )


def _level(comparison: Comparison, index: int) -> Row:
    level = comparison.levels[index]
    cells = [
        "–" if value is None else f"{value:.4g}" + (f" ± {error:.2g}" if error is not None else "")
        for value, error in zip(level.values, level.errors)
    ]
    spread = f", seeds ± {level.seed_spread:.2g}" if level.seed_spread is not None else ""
    return f"{level.name} at {level.at:,}{spread}", cells


def _number(value: float | None, form: str) -> str:
    return "not known" if value is None else form.format(value)


def notes(comparison: Comparison) -> list[str]:
    """What could not be told, once each."""
    found: dict[str, None] = {}
    for run in comparison.runs:
        for text in (*run.speed.missing, *run.missing):
            found.setdefault(text)
    return list(found)


def show(console: Console, comparison: Comparison) -> None:
    for heading, rows in sections(comparison):
        console.print(Text(heading, style="bold"))
        table = Table(box=None, pad_edge=False)
        table.add_column("", style="dim", overflow="fold")
        for run in comparison.runs:
            table.add_column(run.name, overflow="fold")
        for label, cells in rows:
            table.add_row(label, *(Text(cell) for cell in cells))
        console.print(table)
        console.print()
    for line in comparison.code:
        console.print(Text(f"code  {line}"), soft_wrap=True)
    told = comparison.explanation
    console.print(Text.assemble((f"{told.status}  ", "bold"), told.text), soft_wrap=False)
    for trial in told.trials:
        console.print(Text(f"    {_trial_words(comparison)}: {trial}"), soft_wrap=True)
    for text in notes(comparison):
        console.print(Text(f"    not known: {text}", style="dim"), soft_wrap=True)


def as_markdown(comparison: Comparison) -> str:
    lines = [
        f"# {' and '.join(run.name for run in comparison.runs)}",
        "",
        f"**{comparison.explanation.status}**: {comparison.explanation.text}",
        "",
    ]
    lines += [f"- {_trial_words(comparison)}: `{trial}`" for trial in comparison.explanation.trials] + [""] * bool(comparison.explanation.trials)
    for heading, rows in sections(comparison):
        lines += [f"## {heading}", "", f"| | {' | '.join(_cell(run.name) for run in comparison.runs)} |"]
        lines += ["|---" * (len(comparison.runs) + 1) + "|"]
        lines += [f"| {_cell(label)} | {' | '.join(_cell(cell) for cell in cells)} |" for label, cells in rows] + [""]
    if comparison.code:
        lines += ["## Code", "", *[f"- {line}" for line in comparison.code], ""]
    lines += ["## Commands", "", *[f"- {run.name}: `{' '.join(run.command)}`" for run in comparison.runs], ""]
    missing = notes(comparison)
    if missing:
        lines += ["## Not known", "", *[f"- {text}" for text in missing], ""]
    return "\n".join(lines)


def _trial_words(comparison: Comparison) -> str:
    return "would prove it" if comparison.explanation.status == "explained" else "would tell"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Schema 1 of docs/comparing.md."""
    return {
        "schema": SCHEMA,
        "runs": [
            {
                "name": run.name, "folder": str(run.folder), "command": list(run.command), "given": run.given, "seen": run.seen,
                "seeds": list(run.seeds), "outcome": run.outcome, "findings": list(run.findings), "steps": run.steps,
                "speed": asdict(run.speed), "missing": list(run.missing),
            }
            for run in comparison.runs
        ],
        "differences": [asdict(difference) for difference in comparison.differences],
        "same_but_for_the_seed": [list(group) for group in comparison.groups],
        "levels": [asdict(level) for level in comparison.levels],
        "code": list(comparison.code),
        "explanation": asdict(comparison.explanation),
    }  # fmt: skip
