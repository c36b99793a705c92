"""At rest the probes get out of the way of quick loops; what they count and read stays right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from watching import Watched

QUICK = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torchs_own = []
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for step in range(6000):
        inputs = torch.randn(8, 4)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        for _ in range({backwards}):
            loss.backward(retain_graph=True)
        torchs_own.append(torch.autograd.backward.__code__.co_filename.endswith("autograd/__init__.py"))
        optimizer.step()
    print("left alone", any(torchs_own), "at first", any(torchs_own[:16]))
    later = torch.optim.Adam(model.parameters())
"""


def test_backwards_are_counted_although_most_of_them_are_not_seen(run_source: Callable[..., Watched]) -> None:
    seen = run_source(QUICK.format(backwards=1))
    assert "at first False" in seen.output, seen.why()  # whether it is left alone later is a matter of how quick the machine is
    assert counts(seen) == [(0, 0), (6000, 6000)], seen.why()


def test_where_a_window_has_several_backwards_each_is_counted(run_source: Callable[..., Watched]) -> None:
    seen = run_source(QUICK.format(backwards=2))
    assert "left alone False" in seen.output, seen.why()
    assert counts(seen) == [(0, 0), (6000, 12000)], seen.why()


COPIED = """
    import copy
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    copied = None
    for step in range(3000):
        inputs = torch.randn(8, 4)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 2500:
            copied = copy.deepcopy(optimizer)
    for _ in range(7):
        copied.step()
    del optimizer, copied
    later = torch.optim.Adam(model.parameters())
"""


def test_steps_are_counted_for_the_optimizer_that_made_them(run_source: Callable[..., Watched]) -> None:
    seen = run_source(COPIED)
    rows = [fact for fact in facts(seen) if fact["k"] == "windows" and fact["opt"] == "o1"]
    assert sum(row["n"] for row in rows) == rows[-1]["to"] == 3000, seen.why()


def counts(seen: Watched) -> list[tuple[int, int]]:
    """Windows and backwards at the moment each optimizer was made."""
    return [(fact["windows"], fact["backwards"]) for fact in facts(seen) if fact["k"] == "optimizer"]


def facts(seen: Watched) -> list[dict[str, Any]]:
    lines = [line for file in sorted((seen.folder / "facts").glob("*.jsonl")) for line in file.read_text(encoding="utf-8").splitlines()]
    return [json.loads(line) for line in lines]


MANY_OPTIMIZERS = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(8, 3)
    for task in range(200):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for step in range(3):
            x = torch.randn(16, 8)
            loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


def test_of_many_optimizers_that_one_line_makes_only_the_first_are_looked_at_from_their_first_step(run_source: Callable[..., Watched]) -> None:
    seen = run_source(MANY_OPTIMIZERS)
    assert seen.loud == [], seen.why()
    facts = [json.loads(line) for file in seen.folder.rglob("*.jsonl") for line in file.read_text().splitlines()]
    assert sum(fact["n"] for fact in facts if fact["k"] == "windows") == 600
    assert 24 <= sum(fact["k"] == "params" for fact in facts) < 150
