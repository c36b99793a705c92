"""Runs side by side: what was asked for, what was seen, how fast, how well, and which difference explains the outcome."""

from trainsleuth.compare.explain import Comparison, compare
from trainsleuth.compare.run import Run, read_run

__all__ = ["Comparison", "Run", "compare", "read_run"]
