"""Train a small classifier of spectra with W&B; a profiler callback logs beside the training loop."""
import tempfile
import time

import torch
import wandb
from torch import nn

torch.manual_seed(4)
torch.set_num_threads(1)


class Profiler:
    def __init__(self, run, every=10):
        self.run, self.every, self.began = run, every, time.perf_counter()

    def after_batch(self, global_step):
        if global_step % self.every == 0:
            seconds = time.perf_counter() - self.began
            self.run.log({"profile/seconds": seconds, "profile/batches_per_second": (global_step + 1) / seconds}, step=global_step)


def spectra(n=64):
    kind = torch.randint(0, 4, (n,))
    x = 0.5 * torch.randn(n, 48)
    x[torch.arange(n), kind * 12] += 2.0
    return x, kind


def main():
    run = wandb.init(mode="offline", dir=tempfile.mkdtemp(prefix="spectra-"))
    model = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    profiler = Profiler(run)
    step = 0
    for epoch in range(4):
        for _ in range(40):
            x, y = spectra()
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.log({"train/loss": loss.item()})
            profiler.after_batch(step)
            step += 1
        x, y = spectra(512)
        with torch.no_grad():
            run.log({"val/accuracy": (model(x).argmax(1) == y).float().mean().item(), "epoch": epoch})
    run.finish()


if __name__ == "__main__":
    main()
