"""Two writers log to one folder.

What it detects
    Two open SummaryWriters of one process on one folder, the older of which goes on after the newer has begun; or several processes
    (ranks, mostly) that write to one folder at the same time.
Why it matters
    TensorBoard takes all files of a folder for one run, one after the other: curves of the same name become a zigzag of both, and while
    a newer file exists, what is added to an older one is not read.
How it is confirmed
    By the folders, the lines that made the writers, and the times at which they wrote; in a trial each has its own folder (knob
    `folder-per-writer`).
How to cure it
    One writer a folder: make it once and pass it on, or give each its own folder (`runs/train`, `runs/val`). With several ranks only
    rank 0 logs.
When it is wrong
    Two writers that log different names are only noted. A writer that was closed, or is not used any more, does not count.
"""

from itertools import combinations

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, record_rule, run_rule
from trainsleuth.rules.wording import count


@run_rule("logging/two-writers", explains=(), settled_by=("folder-per-writer",))
def rule(run: RunChart) -> Verdict:
    charts = [chart for chart in run.processes.values() if chart.writers]
    for first, second in combinations(charts[:64], 2):
        verdict = _two_processes(first, second, len(charts))
        if verdict is not None:
            return verdict
    return next((verdict for chart in charts if (verdict := _one_process(chart)) is not None), None)


def _two_processes(first: ProcessChart, second: ProcessChart, writing: int) -> Verdict:
    for folder in first.writers.keys() & second.writers.keys():
        (begun, last), (other_begun, other_last) = first.writers[folder], second.writers[folder]
        together = begun["t"] <= other_last["t"] and other_begun["t"] <= last["t"]
        same = sorted(first.metrics.keys() & second.metrics.keys())
        if not (together and same and last["count"] > 1 and other_last["count"] > 1) or begun["pid"] == other_begun["pid"]:
            continue
        at = place(begun["made_at"])
        ranks = [chart.process.get("rank") for chart in (first, second)]
        who = f"ranks {ranks[0]} and {ranks[1]}" if None not in ranks else "two processes"
        return Seen(
            title=f"{who} write the same metrics to one folder",
            where=[Spot(at, "made in every process") if at else None],
            evidence=[
                f"{count(writing, 'process')} of this run have a writer; both of these log {', '.join(same[:4])}",
                f"the folder is {folder}",
            ],
            severity="warning",
            statement="each process makes a writer of its own on the same folder",
            advice=["Make the writer on rank 0 only, or give each rank its own folder."],
        )
    return None


def _one_process(chart: ProcessChart) -> Verdict:
    for folder, fact in chart.two_writers.items():
        same = fact.get("same") or []
        at, made, other = place(fact["at"]), place(fact["made_at"]), place(fact["other_at"])
        return Seen(
            title="two writers are open on one folder" + (f", and both log {same[0]}" if same else ""),
            where=[
                Spot(other, "made on a folder that another writer uses") if other else None,
                Spot(made, "the first writer") if made and made != other else None,
                Spot(at, "still logs to the first") if at else None,
            ],
            evidence=[
                f"at least {count(fact['count'], 'point')} went to the older one after the newer had begun",
                f"the folder is {folder}",
            ],
            severity="warning" if same else "note",
            statement="a second writer was made on the folder of the first",
            advice=["Pass one writer on, or give each its own folder; close a writer that is done."],
        )  # fmt: skip
    return None


@record_rule("logging/two-writers", "cause", masks=("logging/step-not-increasing",), structural=True)
def record(source: SourceRecord) -> Verdict:
    """Event files of one folder that were written at the same time and hold the same names."""
    writers = source.writers
    for one, other in combinations(writers[:64], 2):
        same = sorted(set(one["names"]) & set(other["names"]))
        if same and one["first"] < other["last"] and other["first"] < one["last"]:
            return Seen(
                title=f"two writers wrote {same[0]} to one folder at the same time",
                evidence=[
                    f"{one['path']} and {other['path']} overlap in time",
                    f"both hold {', '.join(same[:4])}" + (f" and {len(same) - 4} more" if len(same) > 4 else ""),
                ],
                severity="warning",
                statement="two writers of one process, or several processes, log to the same folder",
                advice=["One writer a folder; with several ranks only rank 0 logs."],
                certain=False,
                settle="who made them: the host and the process are in the file names",
            )
    return None
