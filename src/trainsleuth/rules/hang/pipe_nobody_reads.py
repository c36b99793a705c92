"""A program waits for a child process, and the child waits until somebody reads what it has written.

What it detects
    A line of the program waits for a process that it started (`wait()`, `poll()` in a loop), and the kernel says that this process
    stands in a write to a pipe. Or the program stands in a write to the pipe of such a process, which itself stands in a write: each waits
    until the other reads. Or the program reads from such a process, which itself stands in a write: what it writes to is another pipe.
Why it matters
    A pipe holds 64 KiB. A decoder, a git or an ffmpeg that prints more stands until its pipe is read, and here the one who should read waits
    for its end. Small samples go well, the first large one stands for ever.
How it is confirmed
    By the two stacks; by a trial whose pipes hold more (knob `pipes-large`): it gets further by as much; and by one in which the line reads
    while it waits (`communicate()`).
How to cure it
    No pipe for what nobody reads; `out, err = process.communicate()` instead of `process.wait()` before reading, or
    `subprocess.run(…, capture_output=True)`.
When it is wrong
    A child that waits for a slow reader which is a third process; that one would have to stand still as well.
"""

from trainsleuth.case.entries import Place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import ProcessSeen, users_line
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import STANDSTILLS, Spot, Verdict, run_rule

READS = ("pipe_read", "anon_pipe_read", "pipe_wait_readable")
WRITES = ("pipe_write", "anon_pipe_write", "pipe_wait_writable")


@run_rule(
    "hang/pipe-nobody-reads", explains=STANDSTILLS, settled_by=("pipes-large",),
    masks=("hang/dataloader-worker", "hang/input-blocked", "hang/queue-nobody-feeds"),
)  # fmt: skip
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process in still.python() if still is not None else ():
        writes = process.main is not None and process.main.waits_in in WRITES
        reads = process.main is not None and process.main.waits_in in READS
        if still is None or process.main is None or not (writes or reads or s.in_file(process.main, "subprocess.py")):
            continue
        writer = next((child for child in still.children(process.pid) if _writes(child)), None)
        at = users_line(process.main)
        if writer is None or at is None:
            continue
        if writes:
            return s.about(
                still,
                f"the program writes to {_name(writer)}, which waits for somebody to read what it has written itself",
                [Spot(at, "writes to the process here"), *_those_that_wait(s.spots(still, process, process.main, ""), at)],
                [
                    f"process {writer.pid} ({_name(writer)}) stands in {_waits_in(writer)}: the pipe of its answers is full, so it reads nothing",
                    s.how_it_waits(process, process.main),
                ],
                "each of the two waits until the other reads, and neither does",
                ["Read each answer behind what is written, read in a thread of its own, or let the process write to a file and not to a pipe."],
                process,
            )
        if reads and not s.in_file(process.main, "subprocess.py"):
            in_it = users_line(writer.main) if writer.main is not None else None
            return s.about(
                still,
                f"the program reads from {_name(writer)}, which waits for somebody to read another of its pipes",
                [
                    Spot(at, "reads from the process here"), *([Spot(in_it, "and the process writes here, to a pipe that is full")] if in_it else []),
                    *_those_that_wait(s.spots(still, process, process.main, ""), at),
                ],
                [
                    f"process {writer.pid} ({_name(writer)}) stands in {_waits_in(writer)}: what it writes to is full, and is not what is read here",
                    s.how_it_waits(process, process.main),
                ],
                "a process has a pipe for its messages, or its output, that nobody reads until it is full",
                ["Leave out stderr=PIPE (its messages go where yours go), or stderr=DEVNULL; or read that pipe in a thread of its own."],
                process,
            )
        return s.about(
            still,
            f"the program waits for {_name(writer)} to end, which waits for somebody to read what it has written",
            [Spot(at, "waits here for the process"), *_those_that_wait(s.spots(still, process, process.main, ""), at)],
            [
                f"process {writer.pid} ({_name(writer)}) stands in {writer.waits_in}: its pipe is full",
                s.how_it_waits(process, process.main),
                *([f"sample {process.sample} is the one that is read"] if process.sample else []),
            ],
            "the pipe is read only after the process has ended, and the process cannot end before it is read",
            ["Read while you wait: `out, err = process.communicate()`, or subprocess.run(…, capture_output=True)."],
            process,
        )
    return None


def _writes(process: ProcessSeen) -> bool:
    return process.waits_in in WRITES or (process.main is not None and process.main.waits_in in WRITES)


def _waits_in(process: ProcessSeen) -> str:
    return process.waits_in if process.waits_in in WRITES or process.main is None else process.main.waits_in


def _name(process: ProcessSeen) -> str:
    return process.command[0].rpartition("/")[2] if process.command else f"process {process.pid}"


def _those_that_wait(spots: list[Spot], but: Place) -> list[Spot]:
    return [spot for spot in spots if spot.at != but]
