"""Character model with a prefetch thread that fills a buffer of batches and keeps count of what was read."""

import collections
import random
import threading
import time

import torch
import torch.nn as nn

TEXT = "the quick brown fox jumps over the lazy dog and runs back home before the night comes " * 40
CHARS = sorted(set(TEXT))


class Prefetcher:
    def __init__(self, batch=24, length=20, depth=6):
        self.batch, self.length = batch, length
        self.buffer = collections.deque(maxlen=depth)
        self.buffer_lock = threading.Lock()
        self.stats_lock = threading.Lock()
        self.read, self.shown = 0, 0
        self.codes = torch.tensor([CHARS.index(c) for c in TEXT])
        self.running = True
        self.thread = threading.Thread(target=self.fill, daemon=True, name="prefetch")
        self.thread.start()

    def cut(self):
        time.sleep(0.004)
        starts = [random.randrange(len(self.codes) - self.length - 1) for _ in range(self.batch)]
        return torch.stack([self.codes[s : s + self.length + 1] for s in starts])

    def fill(self):
        while self.running:
            with self.buffer_lock:
                self.buffer.append(self.cut())
                with self.stats_lock:
                    self.read += 1
            time.sleep(0.002)

    def next(self):
        while True:
            with self.buffer_lock:
                if self.buffer:
                    return self.buffer.popleft()
            time.sleep(0.001)

    def progress(self):
        with self.stats_lock:
            self.shown = self.read
            with self.buffer_lock:
                return f"{self.shown} batches read, {len(self.buffer)} waiting"


class CharModel(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(len(CHARS), 16)
        self.gru = nn.GRU(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, len(CHARS))

    def forward(self, codes):
        return self.out(self.gru(self.embed(codes))[0])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    model = CharModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    batches = Prefetcher()
    for step in range(1, 61):
        codes = batches.next()
        logits = model(codes[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), codes[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.3f}, {batches.progress()}", flush=True)
    batches.running = False


if __name__ == "__main__":
    main()
