"""A fault in native code ended the process.

What it detects
    An illegal instruction, a segmentation fault, a bus error, an abort or a division fault, and the Python line that was running.
Why it matters
    The program dies without a traceback; Python knows nothing of it, and the shell prints two words.
How it is confirmed
    Trials without the newest instructions (knob `onednn-older`) and without oneDNN (knob `onednn-off`): the program runs on.
How to cure it
    An illegal instruction: `ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16` before the command; some virtual machines advertise AMX and do not bear it.
    Else look at what the named line hands to native code: memory that is gone, an index that nothing checks, another version of a library.
When it is wrong
    Memory may have been damaged earlier, at another line; then the place of the fault moves from run to run.
"""

from dataclasses import replace

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.crash.known import explained
from trainsleuth.rules.kinds import Verdict, cause_rule


@cause_rule("crash/native-code", explains=("crash/exception",), settled_by=("onednn-older", "onednn-off"), masks=("crash/known",))
def rule(chart: ProcessChart) -> Verdict:
    if chart.crash is None or not chart.crash.get("native"):
        return None
    seen = explained([chart.crash], chart.windows)
    if seen is None:
        return None
    return replace(seen, evidence=[*seen.evidence, f"after {chart.windows:,} windows and {chart.backwards:,} backward passes"])
