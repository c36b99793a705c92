"""Augment on a thread pool; pre-train on everything, then fine-tune on one region in a process of its own."""

import multiprocessing as mp
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn

torch.set_num_threads(1)


class Augmenter:
    """Jitters the samples of a batch side by side."""

    def __init__(self, threads=4):
        self.pool = ThreadPoolExecutor(max_workers=threads)

    def jitter(self, sample):
        shift = int(torch.randint(-3, 4, (1,)))
        return torch.roll(sample, shift) * (0.9 + 0.2 * torch.rand(1))

    def __call__(self, batch):
        return torch.stack(list(self.pool.map(self.jitter, batch)))


augment = Augmenter()


def readings(n, region=None):
    regions = torch.randint(0, 3, (n,)) if region is None else torch.full((n,), region)
    quake = torch.randint(0, 2, (n,))
    t = torch.arange(40.0)
    base = torch.sin(t * (0.2 + 0.1 * regions[:, None]))
    burst = quake[:, None] * torch.exp(-((t - 20) ** 2) / 12)
    return base + 1.5 * burst + 0.5 * torch.randn(n, 40), quake


def train(model, steps, lr, region=None, tag="pretrain"):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    for step in range(1, steps + 1):
        x, y = readings(32, region)
        x = augment(x)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"[{tag}] step {step} loss {loss.item():.4f}", flush=True)


def finetune(state, region):
    global augment
    augment = Augmenter()
    model = build()
    model.load_state_dict(state)
    train(model, steps=20, lr=1e-3, region=region, tag=f"region {region}")


def build():
    return nn.Sequential(nn.Linear(40, 48), nn.ReLU(), nn.Linear(48, 2))


if __name__ == "__main__":
    torch.manual_seed(0)
    mp.set_start_method("fork")
    model = build()
    train(model, steps=30, lr=5e-3)
    job = mp.Process(target=finetune, args=(model.state_dict(), 1))
    job.start()
    job.join()
    print("done")
