"""Runs programs one after another in forks of one process that has torch and the probes loaded already.

Started by tests/watching.py with the probes' environment. Reads one JSON job a line ({script, argv, cwd, case}), forks, runs the
program as `__main__` in the child with its facts going to its own case, and answers with the exit code. Importing torch once
instead of once per program is all that differs from `trainsleuth run`.
"""

import atexit
import contextlib
import json
import os
import runpy
import signal
import sys
import traceback

import torch
import torch._dynamo  # noqa: F401  the first optimizer of a program would load it

from _trainsleuth_inside import bootstrap


def run_in_child(job):
    os.setsid()
    os.chdir(job["cwd"])
    bootstrap.redirect(job["case"])
    output = os.open(os.path.join(job["case"], "output.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = [job["script"], *job["argv"]]
    sys.path.insert(0, os.path.dirname(job["script"]))
    code = 0
    try:
        runpy.run_path(job["script"], run_name="__main__")
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
    except BaseException:
        code = 1
        sys.excepthook(*sys.exc_info())
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def main():
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                run_in_child(job)
            except BaseException:
                traceback.print_exc()
                os._exit(70)
        signal.signal(signal.SIGALRM, lambda *_, child=pid: os.killpg(child, signal.SIGKILL))
        signal.alarm(job.get("limit", 120))
        _, status = os.waitpid(pid, 0)
        signal.alarm(0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    main()
