"""The instrument that finds the first bad operation, on small computations: the origin, its kind, and silence where nothing is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from _trainsleuth_inside.facts import plain
from _trainsleuth_inside.instruments import sinks
from _trainsleuth_inside.instruments.first_bad import FirstBad
from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.origins import Origin, kind_of


def logits(rows: int = 6, width: int = 4) -> Tensor:
    torch.manual_seed(0)
    return nn.Linear(8, width)(torch.randn(rows, 8))


def log_of_zero() -> Tensor:
    p = F.relu(logits())
    return -torch.log(p - p).mean()


def log_of_softmax_that_underflows() -> Tensor:
    return -(1e4 * logits()).softmax(-1).log().mean()


def root_of_zero() -> Tensor:
    d = logits()
    return (d - d).square().sum(1).sqrt().mean()


def mean_over_an_empty_mask() -> Tensor:
    mask = torch.zeros(6)
    return (logits().sum(1) * mask).sum() / mask.sum()


def every_target_ignored() -> Tensor:
    return F.cross_entropy(logits(), torch.full((6,), -100))


def exponential() -> Tensor:
    return (logits() * 500).exp().mean()


def product_in_half() -> Tensor:
    h = (300 * logits()).half()
    return (h * h).float().mean()


def fully_masked_row() -> Tensor:
    mask = torch.tensor([[True] * 4] + [[False] * 4] * 5)
    return logits().masked_fill(mask, float("-inf")).softmax(-1).square().mean()


def deviation_of_one() -> Tensor:
    return logits()[:1].std(0).sum()


def target_longer_than_input() -> Tensor:
    steps = torch.stack([logits().log_softmax(-1)] * 3)
    return F.ctc_loss(steps, torch.randint(1, 4, (6, 5)), torch.full((6,), 3), torch.full((6,), 5))


def where_after_the_fact() -> Tensor:
    v = logits()
    return torch.where(v > 100, torch.sqrt(v - 100), torch.zeros(())).sum()


def where_between_two_uses_of_a_root() -> Tensor:
    v = logits()
    distance = (v - v.detach()).square().sum(1).sqrt()
    return torch.where(torch.arange(6) > 2, distance.square(), F.relu(2 - distance).square()).mean()


def masked_logarithm() -> Tensor:
    v = logits()
    p = v - v.detach()
    return torch.log(p).masked_fill(p == 0, 0.0).sum()


def copy_over_what_nobody_wrote() -> Tensor:
    v = logits()
    left = torch.empty(6, 4)
    left.data.fill_(torch.inf)
    return left.copy_((v - v).log()).sum()


def nan_in_the_data() -> Tensor:
    x = torch.ones(6, 4)
    x[3, 2] = torch.nan
    return (logits() * x).sum()


def large_weights() -> Tensor:
    w = (logits() * 1e30).detach().requires_grad_()
    return (w @ w.t()).sum()


SICK: dict[Callable[[], Tensor], str] = {
    log_of_zero: "log-of-zero",
    log_of_softmax_that_underflows: "log-of-zero",
    root_of_zero: "sqrt-at-zero",
    mean_over_an_empty_mask: "zero-division",
    every_target_ignored: "zero-division",
    exponential: "exp-overflow",
    product_in_half: "half-overflow",
    fully_masked_row: "softmax-of-empty-row",
    deviation_of_one: "variance-of-one-sample",
    target_longer_than_input: "ctc-infinite",
    where_after_the_fact: "where-trap",
    where_between_two_uses_of_a_root: "sqrt-at-zero",
    masked_logarithm: "where-trap",
    copy_over_what_nobody_wrote: "log-of-zero",
    nan_in_the_data: "bad-sample",
    large_weights: "diverged",
}


def causal_mask() -> Tensor:
    scores = logits()[:4].masked_fill(torch.triu(torch.ones(4, 4), 1).bool(), float("-inf"))
    return scores.softmax(-1).square().mean()


def norm_of_zeros() -> Tensor:
    return (logits() * 0).norm()


def logsumexp_with_masked_entries() -> Tensor:
    return logits().masked_fill(torch.eye(6, 4).bool(), float("-inf")).logsumexp(-1).mean()


def guarded_division() -> Tensor:
    n = torch.zeros(6)
    return (logits().sum(1) / n.clamp_min(1)).mean()


def examined(compute: Callable[[], Tensor]) -> tuple[Origin | None, list[Any]]:
    """The origin of what is bad in the loss, or else in a gradient."""
    made: list[Tensor] = []
    watch = SimpleNamespace(torch=torch, models={}, running=None, owned_parameters=lambda: [])
    book = FirstBad(watch)
    with book.mode:
        loss = compute()
        book.paused = True
        made += [node.variable for node in leaves(loss.grad_fn)]
        book.paused = False
        loss.backward()
    found, sink = book.blame(loss), "loss"
    for leaf in made:
        if found is None and leaf.grad is not None:
            found, sink = book.blame(leaf.grad), "gradient"
    if found is None:
        return None, made
    about = json.loads(json.dumps(plain(found)))
    return Origin({"sink": sink, "used_by": sinks.used_by(loss.grad_fn, found.get("number"))}, about), made


def leaves(node: Any) -> list[Any]:
    if node is None:
        return []
    own = [node] if hasattr(node, "variable") else []
    return own + [leaf for following, _ in node.next_functions for leaf in leaves(following)]


@pytest.mark.parametrize("compute", SICK, ids=lambda compute: compute.__name__)
def test_names_the_kind_and_the_line(compute: Callable[[], Tensor]) -> None:
    origin, _ = examined(compute)
    assert origin is not None
    assert kind_of(origin, ProcessChart()) == SICK[compute], origin.about
    assert origin.at is not None
    code = compute.__code__
    assert origin.at.file == code.co_filename
    assert origin.at.function == compute.__name__


@pytest.mark.parametrize(
    "compute", [causal_mask, norm_of_zeros, logsumexp_with_masked_entries, guarded_division], ids=lambda compute: compute.__name__
)
def test_says_nothing_where_a_mask_or_a_guard_does_its_work(compute: Callable[[], Tensor]) -> None:
    origin, made = examined(compute)
    assert origin is None
    assert all(leaf.grad is None or bool(torch.isfinite(leaf.grad).all()) for leaf in made)


def test_the_chain_leads_from_the_origin_to_the_loss() -> None:
    def compute() -> Tensor:
        p = F.relu(logits())
        inside = torch.log(p - p)
        outside = inside * 0
        return outside.sum()

    origin, _ = examined(compute)
    assert origin is not None
    first = compute.__code__.co_firstlineno
    assert origin.at is not None
    assert origin.at.line == first + 2
    assert [step[2][1] for step in origin.about["chain"] if step[4] == "forward"] == [first + 3, first + 4]
