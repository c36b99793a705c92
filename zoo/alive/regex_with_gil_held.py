"""Strips trailing blanks from scraped documents with an expression that is slow, quadratic in the length, but ends."""

import re
import time

import torch
import torch.nn as nn

TRAILING = re.compile(r"\s+$")


def documents():
    page = "price 10 stock 3 " * 20
    return [page, page + " " * 40000 + "end"] + [page + " " * k for k in range(30)]


def counts(texts):
    return torch.tensor([[text.count(c) / len(text) for c in "abcdeiknoprst "] for text in texts])


def train(model, optimizer, x, steps=30):
    target = x[:, -1:] * 2
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.5f}", flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    train(model, optimizer, counts(documents()))
    began = time.monotonic()
    stripped = [TRAILING.sub("", text) for text in documents()]
    print(f"stripped in {time.monotonic() - began:.1f} s", flush=True)
    train(model, optimizer, counts(stripped))


if __name__ == "__main__":
    main()
