"""Forecast a load curve; a background thread parses the measurements and hands over batches."""

import io
import queue
import random
import threading

import torch
import torch.nn as nn


def measurements(n=900):
    rng = random.Random(3)
    lines, level = [], 10.0
    for i in range(n):
        level += rng.gauss(0, 0.3) - 0.05 * (level - 10)
        lines.append(f"{i};{level:.3f}" if i != 611 else f"{i};n/a")
    return io.StringIO("\n".join(lines))


class BatchFeed:
    def __init__(self, source, window=12, batch=16, ahead=8):
        self.source, self.window, self.batch = source, window, batch
        self.ready = queue.Queue(maxsize=ahead)
        threading.Thread(target=self._parse, name="parser", daemon=True).start()

    def _parse(self):
        values = []
        rows = []
        for line in self.source:
            _, value = line.strip().split(";")
            values.append(float(value))
            if len(values) > self.window:
                rows.append(values[-self.window - 1 :])
            if len(rows) == self.batch:
                self.ready.put(torch.tensor(rows))
                rows = []
        self.ready.put(None)

    def __iter__(self):
        while True:
            rows = self.ready.get()
            if rows is None:
                return
            yield rows[:, :-1] - 10, rows[:, -1:] - 10


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    huber = nn.SmoothL1Loss()
    for step, (past, future) in enumerate(BatchFeed(measurements()), 1):
        loss = huber(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    print("no more measurements")


if __name__ == "__main__":
    main()
