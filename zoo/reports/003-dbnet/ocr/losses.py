"""The loss of DBNet: balanced cross entropy of P, L1 of T near the edges, dice of the binary map."""

import torch
from torch import nn

ALPHA, BETA = 1.0, 10.0
NEGATIVES = 3  # for each positive pixel so many of the hardest negatives count


class DBLoss(nn.Module):
    def forward(self, maps, batch):
        prob = balanced_cross_entropy(maps["prob"], batch["prob_map"])
        thresh = masked_l1(maps["thresh"], batch["thresh_map"], batch["thresh_mask"])
        binary = dice(maps["binary"], batch["prob_map"])
        return ALPHA * prob + BETA * thresh + binary


def balanced_cross_entropy(prob, target):
    loss = nn.functional.binary_cross_entropy(prob, target, reduction="none")
    positive = target > 0.5
    count = min(int(NEGATIVES * positive.sum()), int((~positive).sum()))
    hardest = torch.topk(loss[~positive], count).values
    return (loss[positive].sum() + hardest.sum()) / (positive.sum() + count + 1e-6)


def masked_l1(thresh, target, mask):
    return ((thresh - target).abs() * mask).sum() / (mask.sum() + 1e-6)


def dice(binary, target):
    return 1 - 2 * (binary * target).sum() / (binary.sum() + target.sum() + 1e-6)
