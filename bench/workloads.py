"""Three training steps: a tiny MLP, a small CNN, a small transformer. All seeded, on one thread.

What watching costs is promised for steps of a known length, and machines differ: so the batch is sized on the machine (see
`overhead.py`), and a workload is named with it, as in `cnn:96`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mlp(batch: int) -> Workload:
    """Half a millisecond a step: here every microsecond of watching shows."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    x, y = torch.randn(batch, 64), torch.randint(10, (batch,))
    return Workload(model, torch.optim.SGD(model.parameters(), lr=0.01), x, y)


def cnn(batch: int) -> Workload:
    """Large kernels on small maps: what it computes on stays in the caches. Where the pages of larger maps happen to lie makes one
    process two percent slower than the next, which no number of pairs that anybody waits for averages out."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for before, after, stride in ((3, 64, 2), (64, 128, 2), (128, 128, 1), (128, 128, 1)):
        layers += [nn.Conv2d(before, after, 3, stride=stride, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    x, y = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    return Workload(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), x, y)


def transformer(batch: int) -> Workload:
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(200, 64)
            layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(64, 10)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.encoder(self.embed(tokens)).mean(1))

    model = Classifier()
    x, y = torch.randint(200, (batch, 32)), torch.randint(10, (batch,))
    return Workload(model, torch.optim.AdamW(model.parameters(), lr=1e-3), x, y)


class Workload:
    """One training step each time it is called; returns the loss."""

    def __init__(self, model: Any, optimizer: Any, x: Any, y: Any) -> None:
        from torch import nn

        self.model, self.optimizer = model, optimizer
        self._x, self._y, self._criterion = x, y, nn.CrossEntropyLoss()

    def __call__(self) -> Any:
        self.optimizer.zero_grad()
        loss = self._criterion(self.model(self._x), self._y)
        loss.backward()
        self.optimizer.step()
        return loss


def workload(name: str) -> Workload:
    """The workload of a name such as `cnn:96`."""
    kind, batch = name.split(":")
    return WORKLOADS[kind](int(batch))


WORKLOADS: dict[str, Callable[[int], Workload]] = {"mlp": mlp, "cnn": cnn, "transformer": transformer}
SMALLEST = {"mlp": 64, "cnn": 8, "transformer": 8}  # batches
STEP_SECONDS = {"mlp": 0.0005, "cnn": 0.015, "transformer": 0.015}
TARGETS = {"mlp": 1.03, "cnn": 1.01, "transformer": 1.01}
STEPS_AT_A_TIME = {"mlp": 25, "cnn": 3, "transformer": 3}  # the first of them untimed; odd, so that no power of two hides there
