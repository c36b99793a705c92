"""Running averages, top-k accuracy and mean average precision."""

import numpy as np
import torch


class AverageMeter:
    def __init__(self) -> None:
        self.val = self.sum = self.avg = 0.0
        self.count = 0

    def update(self, val: float, n: int = 1) -> None:
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def topk_hits(similarity: torch.Tensor, label_id: torch.Tensor, k: int) -> int:
    indices = similarity.topk(k, dim=-1)[1]
    return int((indices == label_id[:, None]).sum())


def average_precision(scores: np.ndarray, positive: np.ndarray) -> float:
    """Area under the precision-recall steps; clips with the same score share one step."""
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    last_of_step = np.append(np.nonzero(np.diff(scores))[0], len(scores) - 1)
    hits = np.cumsum(positive)[last_of_step]
    precision = hits / (last_of_step + 1)
    recall = hits / max(hits[-1], 1)
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def mean_average_precision(similarity: torch.Tensor, label_id: torch.Tensor) -> float:
    scores, labels = similarity.float().numpy(), label_id.numpy()
    return float(np.mean([average_precision(scores[:, c], labels == c) for c in range(scores.shape[1])]))
