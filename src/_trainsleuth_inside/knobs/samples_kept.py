"""Knob `samples-kept`: what a data set keeps of a sample is the same after the sample was read.

Changes        the stored numbers of the samples of a batch are put back once the batch is made
Mechanism      samples that change when they are read
Not applicable when reading a sample changes nothing that the data set keeps
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from _trainsleuth_inside.knobs.acting import says
from _trainsleuth_inside.stored_samples import copied, same, stored


def turn(watch: Any) -> None:
    torch, acted = watch.torch, says(watch, "samples-kept")
    base = importlib.import_module("torch.utils.data._utils.fetch")._MapDatasetFetcher
    fetch = base.fetch

    @functools.wraps(fetch)
    def fetch_and_put_back(self: Any, possibly_batched_index: Any) -> Any:
        listed = possibly_batched_index if isinstance(possibly_batched_index, (list, tuple)) else [possibly_batched_index]
        fields = [field for index in listed for field in stored(torch, self.dataset, index)]
        kept = [(value, copied(value)) for _, _, value in fields]
        batch = fetch(self, possibly_batched_index)
        changed = [(value, old) for value, old in kept if not same(value, old)]
        if changed:
            acted()
            batch = _on_its_own(torch, batch)
        for value, old in changed:
            if hasattr(value, "detach"):
                value.data.copy_(old)
            else:
                value[...] = old
        return batch

    base.fetch = fetch_and_put_back


def _on_its_own(torch: Any, batch: Any) -> Any:
    """The same batch in memory of its own."""
    if isinstance(batch, torch.Tensor):
        return batch.clone()
    if isinstance(batch, dict):
        return {name: _on_its_own(torch, value) for name, value in batch.items()}
    if isinstance(batch, (list, tuple)) and type(batch) in (list, tuple):
        return type(batch)(_on_its_own(torch, value) for value in batch)
    return batch
