"""Whiten image patches in the main process, then train the classifier in a process of its own."""

import multiprocessing as mp

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 24


def images(n):
    y = torch.randint(0, 4, (n,))
    waves = torch.sin(torch.arange(SIZE) * (0.3 + 0.25 * y[:, None].float()))
    x = waves[:, None, None, :].expand(n, 3, SIZE, SIZE) + 0.4 * torch.randn(n, 3, SIZE, SIZE)
    return x, y


def whitening(x):
    """The matrix that makes the pixels of a 4 x 4 patch uncorrelated."""
    patches = F.unfold(x, 4, stride=4).transpose(1, 2).reshape(-1, 3 * 16)
    patches = patches - patches.mean(0)
    covariance = patches.T @ patches / len(patches)
    values, vectors = torch.linalg.eigh(covariance)
    return vectors @ torch.diag((values + 0.1).rsqrt()) @ vectors.T


class PatchClassifier(nn.Module):
    def __init__(self, filters):
        super().__init__()
        self.register_buffer("filters", filters.view(-1, 3, 4, 4))
        self.body = nn.Sequential(nn.Conv2d(len(filters), 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.head = nn.Linear(128, 4)

    def forward(self, x):
        x = F.conv2d(x, self.filters, stride=2)
        return self.head(self.body(x))


def train(filters, x, y, batch=16):
    model = PatchClassifier(filters)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for i in range(0, len(x), batch):
        scores = model(x[i : i + batch])
        loss = F.cross_entropy(scores, y[i : i + batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % (4 * batch) == 0:
            print(f"{i:4d} images seen, loss {loss.item():.4f}", flush=True)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    x, y = images(480)
    filters = whitening(x)
    print(f"whitening filters {tuple(filters.shape)}", flush=True)
    context = mp.get_context("fork")
    worker = context.Process(target=train, args=(filters, x, y))
    worker.start()
    worker.join()
    print("worker ended with", worker.exitcode)


if __name__ == "__main__":
    main()
