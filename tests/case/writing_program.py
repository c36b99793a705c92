"""Writes facts as fast as it can until it is killed: the real writer and the real rows, without torch."""

import itertools
import sys

from _trainsleuth_inside.facts import FactWriter
from _trainsleuth_inside.series import LossSeries

facts = FactWriter(sys.argv[1], lambda: {"pid": 0, "world": None})
facts.write("environment", torch="2")
series = LossSeries(("/x/train.py", 7, "main"))
print("writing", flush=True)
for step in itertools.count(1):
    series.add(1.0 / step if step % 50 else float("nan"))
    facts.write("loss", **series.take(), window=step)
    facts.write("metric", name="a" * (step % 400), n=1, mean=1.0, least=1.0, most=1.0, last=1.0, step=step, at=None, windows=step)
