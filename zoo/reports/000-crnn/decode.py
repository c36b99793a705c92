"""Greedy CTC decoding and the character error rate."""

import torch
from data import BLANK


def greedy(log_probs: torch.Tensor) -> list[list[int]]:
    paths = log_probs.argmax(dim=2).T.tolist()
    return [[c for i, c in enumerate(path) if c != BLANK and (i == 0 or c != path[i - 1])] for path in paths]


def edit_distance(a: list[int], b: list[int]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]
