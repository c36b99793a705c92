"""Post-mortem of what runs left behind: read, chart, judge, and quote the lines that findings point at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainsleuth.case.folder import Case
from trainsleuth.case.record_chart import RecordChart, SourceRecord
from trainsleuth.readers import text
from trainsleuth.readers.choose import STANDARD_INPUT, Choice, NothingToRead, Source, choose
from trainsleuth.report.json_report import as_json
from trainsleuth.rules.arbiter import Diagnosis, diagnose_records
from trainsleuth.rules.kinds import Finding

LINES_ARE_LINES = ("text log", "CSV table", "traceback or stack dump", "Keras CSVLogger", "Lightning metrics.csv")
LONGEST_QUOTE = 200
BLOCK = 1 << 20


@dataclass
class Examination:
    """What was read, and what is to be said of it."""

    chart: RecordChart
    choice: Choice
    diagnosis: Diagnosis
    files: dict[str, Path] = field(default_factory=dict)  # by the label that findings name

    def report(self, paths: Sequence[str]) -> dict[str, Any]:
        """The report in the schema of docs/json.md, with what was read and what was not."""
        case = Case(Path(paths[0] if paths and paths[0] != "-" else STANDARD_INPUT), {"cwd": str(Path.cwd())})
        report = as_json(case, self.diagnosis)
        report["sources"] = [
            {"path": source.path, "format": source.format, "points": source.points, "runs": len(source.runs),
             "collectives": len(source.flights),
             "names": len({name for run in source.runs.values() for name in run.series}),
             "skipped": [{"what": s["what"], "count": s["count"], "at": s["at"]} for s in source.skipped]}
            for source in self.chart.sources.values()
        ]  # fmt: skip
        report["ignored"] = [{"path": path, "why": why} for path, why in self.choice.ignored]
        return report


def examine(paths: Sequence[str]) -> Examination:
    """Read all of these and judge."""
    choice = choose(paths)
    if not choice.sources:
        raise NothingToRead(_nothing(choice))
    chart = RecordChart()
    files: dict[str, Path] = {}
    try:
        for source in choice.sources:
            files[source.label] = source.path
            record = _record(chart, source)
            for fact in source.reader.read(source.path):
                record.absorb(fact)
        diagnosis = diagnose_records(chart)
        quote(diagnosis.findings, files)
    finally:
        for source in choice.sources:
            if source.label == STANDARD_INPUT:
                source.path.unlink(missing_ok=True)
    return Examination(chart, choice, diagnosis, files)


def _record(chart: RecordChart, source: Source) -> SourceRecord:
    return chart.source(source.group, source.label, source.reader.NAME in LINES_ARE_LINES)


def _nothing(choice: Choice) -> str:
    if not choice.ignored:
        return "there is nothing to read: this is no case folder, and it holds no file."
    shown = "; ".join(f"{path} {why}" for path, why in choice.ignored[:4])
    more = len(choice.ignored) - 4
    return f"nothing in there can be read: {shown}{f'; and {more} more' if more > 0 else ''}."


def quote(findings: Iterable[Finding], files: dict[str, Path]) -> None:
    """Fill in the text of the lines that findings point at, in one pass over each file."""
    places = [where for finding in findings for where in finding.where if not where.code and where.file in files]
    for label in {where.file for where in places}:
        wanted = {where.line for where in places if where.file == label}
        found = lines_at(files[label], wanted)
        for where in places:
            if where.file == label:
                where.code = found.get(where.line, "")


def lines_at(path: Path, wanted: set[int]) -> dict[int, str]:
    """The texts of these lines, without keeping the others."""
    found: dict[int, str] = {}
    number, last, carry = 1, max(wanted, default=0), b""
    try:
        with path.open("rb") as file:
            while number <= last and (block := file.read(BLOCK)):
                block = carry + block
                count = block.count(b"\n")
                if any(number <= line <= number + count for line in wanted):
                    lines = block.split(b"\n")
                    for line in wanted:
                        if number <= line < number + count:
                            found[line] = _shown(lines[line - number])
                    carry = lines[-1]
                else:
                    carry = block[block.rfind(b"\n") + 1 :]
                carry = carry[-BLOCK:]
                number += count
            if number in wanted and carry:
                found[number] = _shown(carry)
    except OSError:
        pass
    return found


def _shown(line: bytes) -> str:
    """A line as a terminal shows it: what was overwritten is gone, and it has no colours."""
    plain = text.without_colours(line).rstrip(b"\r\n").rpartition(b"\r")[2]
    return plain[:LONGEST_QUOTE].decode("utf-8", "replace").replace("\t", " ").strip()


def follow(path: Path, show: Callable[[Finding], None], wait: Callable[[], bool]) -> Examination:
    """Read a log that is still being written, and show each finding once, when it first holds. Ends when `wait` says no."""
    chart = RecordChart()
    label = str(path)
    record = chart.source(label, label, True)
    record.format = text.NAME
    log = text.TextLog()
    shown: set[str] = set()
    offset = 0
    while True:
        offset = _read_on(path, offset, log, record)
        diagnosis = diagnose_records(chart)
        quote(diagnosis.findings, {label: path})
        for finding in diagnosis.findings:
            if finding.rule not in shown and finding.severity != "note":
                shown.add(finding.rule)
                show(finding)
        if not wait():
            break
    for fact in log.finish():
        record.absorb(fact)
    diagnosis = diagnose_records(chart)
    quote(diagnosis.findings, {label: path})
    source = Source(text, path, label, label)
    return Examination(chart, Choice([source]), diagnosis, {label: path})


def _read_on(path: Path, offset: int, log: text.TextLog, record: SourceRecord) -> int:
    """What was written since; a file that became shorter was begun anew."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            offset = 0 if size < offset else offset
            file.seek(offset)
            while block := file.read(BLOCK):
                offset += len(block)
                for fact in log.feed(block):
                    record.absorb(fact)
    except OSError:
        pass
    return offset
