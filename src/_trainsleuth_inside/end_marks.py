"""Whether a language model is ever told where a text ends: the last real token of each row, and whether its label counts."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.movement import read_all

IGNORED = -100  # what the models of Hugging Face leave out of their loss
MOST_LOOKS = 24


def ends_of(torch: Any, module: Any, kwargs: Dict[str, Any]) -> Optional[Tuple[int, Any, Any, Any]]:
    """The end-of-text token, the rows of a batch, the place of the last real token in each, and whether it is that one."""
    ids, mask, labels = (kwargs.get(name) for name in ("input_ids", "attention_mask", "labels"))
    end = getattr(getattr(getattr(module, "module", module), "config", None), "eos_token_id", None)
    if not isinstance(end, int) or not all(isinstance(one, torch.Tensor) and readable(one) for one in (ids, mask, labels)):
        return None
    if ids is None or mask is None or labels is None or ids.dim() != 2 or not ids.shape == mask.shape == labels.shape:
        return None
    with torch.no_grad():
        places = torch.arange(ids.shape[1], device=ids.device)
        last = torch.where(mask.bool(), places, -1).amax(1)
        rows = torch.arange(ids.shape[0], device=ids.device)
        return end, rows, last.clamp(min=0), (last >= 0) & (ids[rows, last.clamp(min=0)] == end)


class EndMarks:
    def __init__(self, watch: Any) -> None:
        self._watch = watch
        self._looks = 0

    def look(self, module: Any, kwargs: Dict[str, Any]) -> None:
        """Before a forward that records gradients."""
        torch, watch = self._watch.torch, self._watch
        if self._looks >= MOST_LOOKS or watch.late.busy():
            return
        with watch.plainly():
            found = ends_of(torch, module, kwargs)
            if found is None:
                return
            self._looks += 1
            end, rows, last, ends = found
            labels = kwargs["labels"]
            with torch.no_grad():
                counts = torch.stack([ends.sum(), (ends & (labels[rows, last] == IGNORED)).sum(), (labels == end).sum()]).float()

        def arrived(values: Any) -> None:
            whole, ignored, learnt = (int(value) for value in values[0])
            watch.facts.write("end_marks", rows=len(rows), ends=whole, ignored=ignored, learnt=learnt, end=end, windows=watch.windows)

        read_all(watch, [counts], arrived)
