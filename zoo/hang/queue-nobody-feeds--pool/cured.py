"""A classifier whose batches are read ahead by a pool of threads."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

CENTRES = torch.randn(4, 16, generator=torch.Generator().manual_seed(5))
READERS = ThreadPoolExecutor(4)
SAMPLES = ThreadPoolExecutor(4)


def read_sample(index: int) -> tuple[torch.Tensor, int]:
    chance = torch.Generator().manual_seed(index)
    kind = int(torch.randint(4, (), generator=chance))
    return CENTRES[kind] + torch.randn(16, generator=chance), kind


def read_batch(indices: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    samples = [SAMPLES.submit(read_sample, index) for index in indices]
    xs, ys = zip(*(sample.result() for sample in samples))
    return torch.stack(xs), torch.tensor(ys)


def batches(epoch: int, ahead: int):
    order = torch.randperm(640, generator=torch.Generator().manual_seed(epoch)).tolist()
    waiting = [order[at : at + 32] for at in range(0, len(order), 32)]
    read = [READERS.submit(read_batch, waiting.pop(0)) for _ in range(ahead)]
    while read:
        yield read.pop(0).result()
        if waiting:
            read.append(READERS.submit(read_batch, waiting.pop(0)))


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        for x, y in batches(epoch, ahead=1 if epoch == 0 else 6):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}", flush=True)


main()
