"""Half precision: what harms is named with its numbers, and what only looks like harm is left alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from trainsleuth.rules.halves import Row, step_of
from watching import Watched

HEAD = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    centres = torch.randn(3, 8)

    def batch(n=32):
        y = torch.randint(0, 3, (n,))
        return centres[y] + torch.randn(n, 8), y

    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    half = lambda: torch.autocast("cpu", dtype=torch.float16)
"""

DIVIDED_AFTER_SCALING = (
    HEAD
    + """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for _ in range(40):
        optimizer.zero_grad()
        for _ in range(2):
            x, y = batch()
            with half():
                loss = F.cross_entropy(model(x), y)
            (scaler.scale(loss) / 2).backward()
        optimizer.step()
"""
)

ONLY_ONE_UNSCALED = (
    HEAD
    + """
    other = nn.Linear(8, 3)
    first = torch.optim.SGD(model.parameters(), lr=0.05)
    second = torch.optim.SGD(other.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(40):
        x, y = batch()
        with half():
            loss = F.cross_entropy(model(x), y) + F.cross_entropy(other(x), y)
        first.zero_grad()
        second.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(first)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        nn.utils.clip_grad_norm_(other.parameters(), 1.0)
        scaler.step(first)
        scaler.step(second)
        scaler.update()
"""
)

UNSCALED_THEN_STEPPED_DIRECTLY = (
    HEAD
    + """
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(80):
        x, y = batch()
        with half():
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        scaler.update()
"""
)

FUSED = (
    HEAD
    + """
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(60):
        x, y = batch()
        with half():
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
)

MOSTLY_DEAD = (
    HEAD
    + """
    with torch.no_grad():
        model[0].bias[:28] = -50.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        x, y = batch()
        with half():
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
)

WARM_UP = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    centres = torch.randn(3, 8)
    model = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 3)).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 150))
    for step in range(300):
        y = torch.randint(0, 3, (32,))
        loss = nn.functional.cross_entropy(model((centres[y] + torch.randn(32, 8)).bfloat16()).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
"""

STRAIGHT_THROUGH = """
    import torch
    from torch import nn

    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad):
            return grad

    torch.manual_seed(0)
    centres = torch.randn(3, 8)
    inner, outer = nn.Linear(8, 16), nn.Linear(16, 3)
    optimizer = torch.optim.Adam([*inner.parameters(), *outer.parameters()], lr=1e-2)
    for step in range(60):
        y = torch.randint(0, 3, (32,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            code = Round.apply(4 * torch.tanh(inner(centres[y] + torch.randn(32, 8)).float()))
            loss = nn.functional.cross_entropy(outer(code), y)
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
"""


PARTLY_SCALED = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    scaler.scale(torch.zeros(()))  # another loss
    for step in range(60):
        x = torch.randn(32, 8)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        {backward}
        scaler.step(optimizer)
        scaler.update()
"""


def line_of(source: str, text: str) -> int:
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


def test_a_scaled_loss_is_known_when_it_is_divided_afterwards(run_source: Callable[..., Watched]) -> None:
    watched = run_source(DIVIDED_AFTER_SCALING)
    first = watched.findings[0]
    assert first["rule"] == "precision/step-without-unscale", watched.why()
    assert first["severity"] == "critical"
    assert first["where"][0]["code"] == "optimizer.step()"


def test_a_loss_that_bypasses_the_scaler_is_named(run_source: Callable[..., Watched]) -> None:
    watched = run_source(PARTLY_SCALED.format(backward="loss.backward()"))
    first = watched.findings[0]
    assert (first["rule"], first["severity"]) == ("precision/loss-not-scaled", "critical"), watched.why()
    assert first["where"][0]["code"] == "loss.backward()"


@pytest.mark.parametrize("backward", ["sum(scaler.scale([loss, loss])).backward()", "(scaler.scale(loss) / 2 + scaler.scale(loss) / 2).backward()"])
def test_a_loss_that_is_scaled_in_another_way_is_left_alone(backward: str, run_source: Callable[..., Watched]) -> None:
    watched = run_source(PARTLY_SCALED.format(backward=backward))
    assert "precision/loss-not-scaled" not in watched.rules, watched.why()


def test_of_two_optimizers_the_one_that_was_not_unscaled_is_named(run_source: Callable[..., Watched]) -> None:
    watched = run_source(ONLY_ONE_UNSCALED)
    found = [finding for finding in watched.loud if finding["rule"] == "precision/clip-before-unscale"]
    assert [finding["where"][0]["line"] for finding in found] == [line_of(ONLY_ONE_UNSCALED, "clip_grad_norm_(other")], (
        watched.why()
    )


@pytest.mark.parametrize("source", [UNSCALED_THEN_STEPPED_DIRECTLY, FUSED, WARM_UP], ids=["direct", "fused", "warm-up"])
def test_healthy_half_precision_is_left_alone(source: str, run_source: Callable[..., Watched]) -> None:
    watched = run_source(source)
    assert watched.findings == [], watched.why()
    assert watched.report["probes_off"] == []


def test_zeros_of_dead_units_are_not_taken_for_underflow(run_source: Callable[..., Watched]) -> None:
    watched = run_source(MOSTLY_DEAD)
    told = {finding["rule"]: finding["severity"] for finding in watched.findings}
    assert told.get("precision/no-grad-scaler") == "note", watched.why()
    assert "precision/gradient-underflow" not in told


def test_autocast_around_backward_is_a_note_while_nothing_is_rounded(run_source: Callable[..., Watched]) -> None:
    watched = run_source(STRAIGHT_THROUGH)
    assert [(f["rule"], f["severity"]) for f in watched.findings] == [("precision/autocast-around-backward", "note")], (
        watched.why()
    )


def test_vanishing_gradients_are_told_module_by_module(run_zoo: Callable[..., Watched]) -> None:
    first = run_zoo("precision/gradient-underflow--half-weights/sick.py").findings[0]
    evidence = "\n".join(first["evidence"])
    assert "gradient at the output of score.2" in evidence
    assert "below the smallest number of float16" in evidence


@pytest.mark.parametrize(
    ("dtype", "value", "step"),
    [
        ("bfloat16", 1.0, 2**-7),
        ("bfloat16", 0.99, 2**-8),
        ("float16", 1.0, 2**-10),
        ("float16", 1e-7, 2**-24),
        ("float16", 0.0, 2**-24),
    ],
)
def test_the_step_of_a_type(dtype: str, value: float, step: float) -> None:
    assert step_of(dtype, value) == step


def test_what_is_zero_everywhere_says_nothing_by_itself() -> None:
    assert not Row("weight", "conv.weight", 1.0, None).struck
    assert Row("weight", "conv.weight", 0.3, 0.9).struck
    assert Row("cast", "head", 0.0, 0.2).struck
    assert not Row("output", "head", 0.9, math.nan).struck
