"""An index is rebuilt on a thread that holds the lock; the main thread waits for it, then trains on."""

import threading
import time

import torch
import torch.nn as nn


class HardExamples:
    def __init__(self, n):
        self.x = torch.randn(n, 16)
        self.y = (self.x[:, :2].prod(1) > 0).long()
        self.order = torch.arange(n)
        self.lock = threading.Lock()

    def rebuild(self, model, seconds):
        begun = threading.Event()

        def work():
            with self.lock:
                begun.set()
                until = time.monotonic() + seconds
                total = torch.zeros(len(self.x))
                with torch.no_grad():
                    while time.monotonic() < until:
                        noisy = self.x + 0.05 * torch.randn_like(self.x)
                        total += nn.functional.cross_entropy(model(noisy), self.y, reduction="none")
                self.order = total.argsort(descending=True)

        threading.Thread(target=work, name="rebuild").start()
        begun.wait()

    def batch(self, size=64):
        with self.lock:
            rows = self.order[torch.randint(0, len(self.order) // 2, (size,))]
        return self.x[rows], self.y[rows]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    examples = HardExamples(5000)
    model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, 81):
        x, y = examples.batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 40:
            examples.rebuild(model, seconds=10)
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
