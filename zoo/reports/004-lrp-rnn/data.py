"""Sentences of made-up words; the words of one mood decide the label, and which words they are is known."""

import torch

MOOD = 5  # words 1..5 are good, 6..10 bad, 0 is padding


def sentences(count: int, length: int, vocab: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Word numbers (count, length), labels, and which places carry the mood."""
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(2 * MOOD + 1, vocab, (count, length), generator=g)
    label = torch.randint(0, 2, (count,), generator=g)
    places = torch.rand(count, length, generator=g).argsort(1)[:, :2]
    moody = torch.randint(1, MOOD + 1, (count, 2), generator=g) + MOOD * (1 - label[:, None])
    ids.scatter_(1, places, moody)
    return ids, label, torch.zeros(count, length).scatter_(1, places, 1.0).bool()
