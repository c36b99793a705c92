"""The workers of a loader give the same batches.

What it detects
    A loader has several workers, and of the first batches of its passes each comes as often in a row as there are workers, to the last digit.
Why it matters
    Each worker has its own copy of the data set, and with it of a generator that was made before: all draw the same numbers. What looks
    like fresh or augmented data is a fraction of it, and each batch is trained on several times.
How it is confirmed
    By the batches themselves. The trial `workers` makes them in one process: none comes twice.
How to cure it
    Seed a generator inside of the worker, from `torch.utils.data.get_worker_info().seed`; it differs from worker to worker and from pass to pass. A
    data set that reads files must give each worker its own part of them.
When it is wrong
    Batches that are all the same on purpose (a test of speed) are left alone: several different ones must come in such groups.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule

GROUPS = 3


@cause_rule("data/workers-share-random-state", settled_by=("workers",))
def rule(chart: ProcessChart) -> Verdict:
    for loader in chart.loaders.values():
        workers = int(loader.about.get("workers") or 0)
        groups = [_groups(equal_to, workers) for equal_to in loader.compared]
        if workers < 2 or not groups or min(groups) < 1 or sum(groups) < GROUPS:
            continue
        at = place(loader.about.get("read_at"))
        return Seen(
            title=f"the {workers} workers of a loader give the same batches: each comes {workers} times",
            where=[
                Spot(loader.at, "this loader") if loader.at else None,
                Spot(at, "each worker makes the same samples here", function=True) if at else None,
            ],
            evidence=[f"{len(groups)} passes looked at: their first {sum(groups) * workers} batches are {sum(groups)} different ones"],
            severity="warning",
            step=chart.windows,
            statement="each worker has a copy of the same generator, or reads the same part of the data",
            advice=["Make the generator in the worker: np.random.default_rng(torch.utils.data.get_worker_info().seed)."],
        )
    return None


def _groups(equal_to: list[int], workers: int) -> int:
    """How many groups of equal batches, one of each worker, and nothing else; 0 if there is anything else."""
    whole = len(equal_to) // workers if workers > 1 else 0
    for group in range(whole):
        if equal_to[group * workers : (group + 1) * workers] != [group * workers] * workers:
            return 0
    return whole

