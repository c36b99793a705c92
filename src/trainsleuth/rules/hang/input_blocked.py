"""The program waits for something from outside: a file, a pipe, a socket, a download, standard input.

What it detects
    The main thread waits in a read, an open, a connect or an accept that was called from the program's own line, and nothing arrives.
Why it matters
    Nothing is wrong with the training; it has not been given what it waits for.
How it is confirmed
    By the stack, and by what the kernel says that the thread waits for.
How to cure it
    Give the call a time limit, and look why the other side is silent. A job without a terminal must not ask questions.
When it is wrong
    A program whose job it is to wait. A terminal with a person at it is never reported.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import ThreadSeen
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Verdict, run_rule

WAITS = {
    "wait_for_partner": "a named pipe that nobody opens on the other side", "pipe_read": "a pipe", "anon_pipe_read": "a pipe",
    "fifo_open": "a named pipe that nobody opens on the other side", "n_tty_read": "a terminal", "wait_woken": "a socket or terminal",
    "sk_wait_data": "a socket", "inet_csk_accept": "a connection", "unix_stream_data_wait": "a local socket",
    "unix_stream_read_generic": "a local socket", "inet_stream_connect": "a connection", "inet_wait_for_connect": "a connection",
    "skb_wait_for_more_packets": "a socket", "folio_wait_bit_common": "a disk", "rpc_wait_bit_killable": "a network file system",
    "do_poll": "a socket or pipe", "poll_schedule_timeout": "a socket or pipe", "ep_poll": "a socket or pipe",
}  # fmt: skip
CALLS = ("read", "recv", "accept", "connect", "open", "poll", "select")


@run_rule("hang/input-blocked")
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process, thread in s.end_of_chain(still) if still is not None else ():
        what = _waits_for(thread)
        if still is None or not what or s.at_a_queue(thread) or s.is_worker(thread):
            continue
        return s.about(
            still,
            f"the program waits for {what}, and nothing arrives",
            s.spots(still, process, thread, "waits here"),
            [s.how_it_waits(process, thread)],
            f"nothing comes from {what}",
            ["Give the call a time limit, and look why the other side is silent."],
            process,
        )
    return None


def _waits_for(thread: ThreadSeen) -> str:
    if thread.waits_in in WAITS:
        return WAITS[thread.waits_in]
    inner = thread.innermost_native()
    leaf = inner[0].function.lstrip("_").removeprefix("GI___libc_").removeprefix("libc_") if inner else ""
    return "something from outside" if leaf.startswith(CALLS) and not thread.waits_in.startswith("futex") else ""
