"""Train while a thread writes checkpoints; a file lock keeps readers away from half-written ones."""

import ctypes
import os
import tempfile
import threading
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LOCK_EX, LOCK_UN = 2, 8
libc = ctypes.PyDLL(None, use_errno=True)


class FileLock:
    """flock(2) works on network file systems where lockf does not."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_CREAT | os.O_RDWR)

    def __enter__(self):
        if libc.flock(self.fd, LOCK_EX) != 0:
            raise OSError(ctypes.get_errno(), "flock")

    def __exit__(self, *exc):
        libc.flock(self.fd, LOCK_UN)


class CheckpointWriter:
    def __init__(self, folder):
        self.path = os.path.join(folder, "last.pt")
        self.guard = self.path + ".lock"

    def save(self, model):
        state = {name: value.clone() for name, value in model.state_dict().items()}
        begun = threading.Event()
        thread = threading.Thread(target=self._write, args=(state, begun), daemon=True)
        thread.start()
        begun.wait()

    def _write(self, state, begun):
        with FileLock(self.guard):
            begun.set()
            time.sleep(0.3)
            torch.save(state, self.path)

    def load(self, model):
        with FileLock(self.guard):
            model.load_state_dict(torch.load(self.path))


def batch(n=32):
    x = torch.randn(n, 1, 12, 12)
    y = (x[:, 0, :6].mean((1, 2)) > x[:, 0, 6:].mean((1, 2))).long()
    return x, y


torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
writer = CheckpointWriter(tempfile.mkdtemp())
for step in range(1, 41):
    x, y = batch()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
    if step % 20 == 0:
        writer.save(model)
        writer.load(model)
