"""How far ahead of the tokens that a model looks up are the targets that its answers are compared with: one, in a language model."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from _trainsleuth_inside.graph import signed

AHEAD = (-1, 0, 1, 2)
LEAST_LENGTH = 8
MOST_NODES = 1000


def begins_later(predictions: Any, looked_up: List[Any]) -> bool:
    """Whether the first positions of a sequence were cut off on the way from the tokens to what they are compared with: then the first
    target is not that of the first token."""
    lengths = {int(length) for tokens in looked_up for length in tokens.shape}
    nodes = [predictions.grad_fn]
    seen = set(nodes)
    for node in nodes:
        if node is None or len(nodes) > MOST_NODES:
            continue
        if node.name().startswith("SliceBackward") and int(node._saved_start) != 0:
            sizes, axis = node._saved_self_sym_sizes, signed(int(node._saved_dim))
            if int(sizes[axis]) in lengths:
                return True
        new = [following for following, _ in node.next_functions if following not in seen]
        seen.update(new)
        nodes += new
    return False


def is_tokens(torch: Any, tensor: Any) -> bool:
    """Whether a tensor looks like a batch of sequences of tokens."""
    return tensor.dim() == 2 and max(tensor.shape) >= LEAST_LENGTH and tensor.dtype in (torch.int64, torch.int32)


def shares_ahead(torch: Any, target: Any, looked_up: List[Any], ignored: int) -> Dict[str, Any]:
    """For each distance, the share of the targets that are the token so far ahead of their place, in the tokens that fit best."""
    best: Dict[str, Any] = {}
    for wanted, tokens in (pair for each in looked_up for pair in _side_by_side(target, each)):
        for ahead in AHEAD:
            one, other = _overlap(wanted, tokens, ahead)
            counted = one != ignored
            share = ((one == other) & counted).sum().float() / counted.sum().clamp_min(1)
            name = f"ahead {ahead}"
            best[name] = torch.maximum(best[name], share) if name in best else share
    return best


def next_tokens(target: Any, looked_up: List[Any], ignored: int, ahead: int) -> Optional[Any]:
    """The targets as they would be one ahead, where they are all `ahead` of one of the batches of tokens; the last ones stay as they are."""
    for each in looked_up:
        for wanted, tokens in _side_by_side(target, each):
            one, other = _overlap(wanted, tokens, ahead)
            counted = one != ignored
            if not bool(counted.any()) or not bool((one == other)[counted].all()):
                continue
            moved = wanted.clone()
            new, token = _overlap(moved, tokens, 1)
            new.copy_(token.to(new.dtype).where(new != ignored, new))
            return (moved if tokens is each else moved.T).reshape(target.shape)
    return None


def _side_by_side(target: Any, tokens: Any) -> Iterator[Tuple[Any, Any]]:
    """Targets and tokens as rows of sequences, for batches that come first and for batches that come second."""
    samples, length = tokens.shape
    if length >= LEAST_LENGTH and target.numel() % samples == 0 and abs(target.numel() // samples - length) <= 2:
        yield target.reshape(samples, -1), tokens
    if samples >= LEAST_LENGTH and target.numel() % length == 0 and abs(target.numel() // length - samples) <= 2:
        yield target.reshape(-1, length).T, tokens.T


def _overlap(wanted: Any, tokens: Any, ahead: int) -> Tuple[Any, Any]:
    first, last = max(0, -ahead), max(0, min(wanted.shape[1], tokens.shape[1] - ahead))
    return wanted[:, first:last], tokens[:, first + ahead : last + ahead]
