"""Checkpoints are written row by row, each row synced to the disk, at the pace that the shared storage allows."""

import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def save_rows(model, folder, pause=0.004):
    rows = 0
    for name, value in model.state_dict().items():
        with open(os.path.join(folder, name), "wb") as file:
            for row in value.reshape(len(value), -1):
                file.write(row.numpy().tobytes())
                file.flush()
                os.fsync(file.fileno())
                time.sleep(pause)
                rows += 1
    return rows


def train(model, optimizer, steps):
    for _ in range(steps):
        x = torch.randn(32, 64)
        y = x[:, :10].argmax(1)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 900), nn.ReLU(), nn.Linear(900, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    print(f"loss {train(model, optimizer, 40):.4f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        rows = save_rows(model, folder)
        print(f"{rows} rows saved in {time.monotonic() - began:.1f} s", flush=True)
    print(f"loss {train(model, optimizer, 40):.4f}", flush=True)
