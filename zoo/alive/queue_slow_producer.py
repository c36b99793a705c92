"""A producer process needs ten seconds for one difficult batch; the consumer waits at the queue."""

import multiprocessing as mp
import time

import torch
import torch.nn as nn


def produce(batches, count, difficult, seconds):
    import random

    rng = random.Random(4)
    for k in range(count):
        rows = [[rng.gauss(0, 1) for _ in range(5)] for _ in range(32)]
        until = time.monotonic() + (seconds if k == difficult else 0)
        while time.monotonic() < until:
            rows.sort(key=lambda row: rng.random())
        batches.put((rows, [[max(row)] for row in rows]))
    batches.put(None)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    context = mp.get_context("fork")
    batches = context.Queue(maxsize=4)
    producer = context.Process(target=produce, args=(batches, 60, 30, 10))
    producer.start()
    model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    step = 0
    while (batch := batches.get()) is not None:
        rows, largest = map(torch.tensor, batch)
        loss = nn.functional.mse_loss(model(rows), largest)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 15 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    producer.join()


if __name__ == "__main__":
    main()
