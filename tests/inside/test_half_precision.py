"""Looking at half precision leaves no trace: same numbers to the bit, same functions, and nothing in the way while resting."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from side_by_side import both_ways
from watching import Watched

HERE = Path(__file__).parent

RESTING = """
    import torch
    from torch import nn
    from torch.nn.utils import clip_grad_norm_

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    whose = set()
    for step in range(3000):
        loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 2))
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        whose.add(torch.nn.utils.clip_grad_norm_.__code__.co_filename)
        optimizer.step()
    print("seen", sorted("clip_grad.py" in name for name in whose), clip_grad_norm_ is torch.nn.utils.clip_grad_norm_)
"""


def test_half_precision_prints_the_same_numbers(tmp_path: Path) -> None:
    plain, watched, report = both_ways([sys.executable, str(HERE / "half_program.py")], tmp_path)
    assert plain.stdout.count("weights") == 9, plain.stderr
    assert watched.stdout == plain.stdout
    assert watched.stderr == plain.stderr
    assert report["probes_off"] == []


def test_at_rest_the_clip_functions_are_those_of_torch(run_source: Callable[..., Watched]) -> None:
    watched = run_source(RESTING)
    assert "seen [False, True]" in watched.output, watched.why()
    assert watched.report["probes_off"] == []


def test_the_loss_is_known_although_only_a_part_of_it_was_scaled(run_source: Callable[..., Watched]) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        for step in range(20):
            loss = model(torch.ones(16, 8)).pow(2).mean() + 5
            scaler.scale(loss / 2).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        """)
    (curve,) = seen.chart.training()[0].losses.values()
    assert curve.count == 20
    assert 2.4 < curve.last < 4
