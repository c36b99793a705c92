"""Cures `stall/batch-taken-for-steps`: modules are made with `batch_first=True`."""

from __future__ import annotations

from trainsleuth.remedies.expressions import argument, called, set_argument
from trainsleuth.remedies.source import NotPossible, Source, called_name

KINDS = ("TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer", "MultiheadAttention", "LSTM", "GRU", "RNN")


def batch_first(source: Source) -> str:
    changed = []
    for call in called(source, *KINDS):
        given = argument(call, None, "batch_first")
        if given is None and not any(each.star for each in call.args):
            set_argument(source, call, "batch_first", "True")
            changed.append((called_name(call), source.first_line(call)))
    if not changed:
        raise NotPossible("no attention or recurrent module is made here without batch_first")
    return ", ".join(f"{name} in line {line}" for name, line in changed) + ": the first axis are the samples (batch_first=True)"
