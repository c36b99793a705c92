"""Logs to W&B offline in ways of which some lose points; the second word chooses how: `plain` or `stepping`.

What was given to W&B, call by call, is written to given.json: the names and their value, the step.
"""

import json
import random
import sys
from pathlib import Path

import torch  # noqa: F401  (probes arrive with torch)
import wandb

from trainsleuth import StepLogger

folder, how = Path(sys.argv[1]), sys.argv[2]
settings = wandb.Settings(silent=True, x_disable_stats=True, x_disable_meta=True)
run = wandb.init(mode="offline", dir=str(folder), settings=settings)
chance = random.Random(int(sys.argv[3]))
counter = 0
given = []
log = StepLogger(wandb=run) if how == "stepping" else None
for number in range(200):
    data = {f"m{chance.randrange(5)}": float(number), "n": {"x": float(number)}}
    step = chance.choice((None, None, counter, counter - 2, counter + 3))
    commit = chance.choice((None, None, None, True, False))
    counter = counter + 1 if step is None else max(counter, step)
    if log is not None:
        log.step({name if name != "n" else "n.x": float(number) for name in data}, at=step)
    else:
        run.log(data, step=step, commit=commit)
    given.append([[name if name != "n" else "n.x" for name in data], float(number), step])
(folder / "given.json").write_text(json.dumps(given))
run.finish()
wandb.teardown()
