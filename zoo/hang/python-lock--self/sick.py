import threading

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Tracker:
    """Running averages that may be read from other threads (a live plot, for one)."""

    def __init__(self, every):
        self.every = every
        self.lock = threading.Lock()
        self.values = {}
        self.steps = 0

    def update(self, **values):
        with self.lock:
            self.steps += 1
            for name, value in values.items():
                self.values.setdefault(name, []).append(value)
            if self.steps % self.every == 0:
                print(f"step {self.steps}: {self.summary()}", flush=True)

    def summary(self):
        with self.lock:
            recent = {name: values[-self.every :] for name, values in self.values.items()}
        return ", ".join(f"{name} {sum(values) / len(values):.4f}" for name, values in recent.items())


class AutoEncoder(nn.Module):
    def __init__(self, inputs, code):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 32), nn.ELU(), nn.Linear(32, code))
        self.decoder = nn.Sequential(nn.Linear(code, 32), nn.ELU(), nn.Linear(32, inputs))

    def forward(self, x):
        code = self.encoder(x)
        return self.decoder(code), code


def curves(n):
    t = torch.linspace(0, 6, 36)
    a, b = torch.rand(2, n, 1) * 2
    return a * torch.sin(t) + b * torch.cos(2 * t) + 0.05 * torch.randn(n, 36)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(17)
    loader = DataLoader(TensorDataset(curves(960)), batch_size=32, shuffle=True)
    model = AutoEncoder(36, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    tracker = Tracker(every=15)
    for epoch in range(2):
        for (x,) in loader:
            rebuilt, code = model(x)
            reconstruction = (rebuilt - x).pow(2).mean()
            penalty = 1e-3 * code.pow(2).mean()
            optimizer.zero_grad()
            (reconstruction + penalty).backward()
            optimizer.step()
            tracker.update(reconstruction=reconstruction.item(), penalty=penalty.item())
    print("final:", tracker.summary())


if __name__ == "__main__":
    main()
