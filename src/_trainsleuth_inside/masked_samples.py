"""What a padding mask hides and what it keeps: how far the samples of a batch differ at the places of either kind.

Attention of torch's leaves out the places where the mask is True. Who gives it the mask of the real places keeps the padding and nothing else.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.places import Place

MOST = 8  # calls of one window
NAMES = ("src_key_padding_mask", "key_padding_mask")
POSITIONS = {"TransformerEncoder": 2, "TransformerEncoderLayer": 2, "MultiheadAttention": 3}  # of the mask, where it is not given by name
ROWS, STEPS = 64, 256


class MaskedSamples:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.rows: List[Tuple[str, Optional[Place]]] = []  # kind of module, and where it was called
        self.numbers: List[Any] = []  # of each: spread of what is kept, spread of what is hidden, size of it, share that is hidden

    def look(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], at: Optional[Place]) -> None:
        kind = type(module).__name__
        at_position = POSITIONS.get(kind)
        if at_position is None or len(self.rows) >= MOST:
            return
        mask = next((kwargs[name] for name in NAMES if kwargs.get(name) is not None), args[at_position] if len(args) > at_position else None)
        values = args[1] if kind == "MultiheadAttention" and len(args) > 1 else args[0] if args else kwargs.get("key", kwargs.get("src"))
        if not isinstance(mask, self._torch.Tensor) or not isinstance(values, self._torch.Tensor) or mask.dtype != self._torch.bool:
            return
        if mask.dim() != 2 or values.dim() != 3 or not (readable(mask) and readable(values)):
            return
        values = values.detach()
        if values.shape[:2] != mask.shape and values.shape[:2] == mask.shape[::-1]:
            values = values.transpose(0, 1)
        if values.shape[:2] != mask.shape or mask.shape[0] < 2:
            return
        with self._torch.no_grad():
            self.rows.append((kind, at))
            self.numbers.append(self._spreads(values[:ROWS, :STEPS].float(), mask[:ROWS, :STEPS]))

    def _spreads(self, values: Any, hidden: Any) -> Any:
        kept = self._between_samples(values, ~hidden)
        return self._torch.stack([kept, self._between_samples(values, hidden), values.abs().mean(), hidden.float().mean()])

    def _between_samples(self, values: Any, chosen: Any) -> Any:
        """The spread between samples at one place, over the places where two samples or more are chosen; -1 where there is none."""
        weight = chosen.unsqueeze(-1).float()
        count = weight.sum(0)
        mean = (values * weight).sum(0) / count.clamp_min(1)
        spread = ((((values - mean) * weight) ** 2).sum(0) / count.clamp_min(1)).sqrt().mean(-1)
        enough = (count.squeeze(-1) > 1).float()
        return self._torch.where(enough.sum() > 0, (spread * enough).sum() / enough.sum().clamp_min(1), -self._torch.ones_like(enough.sum()))
