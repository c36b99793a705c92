"""Spam filter on short messages; a thread prints a heartbeat so that one sees that the job lives."""

import random
import re
import threading
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

WORDS = ["meeting", "lunch", "invoice", "report", "thanks", "tomorrow", "project", "call", "team", "winner", "prize", "free", "click", "offer", "cash", "now"]
SENTENCE = re.compile(r"^([a-z]+\s?)+[.!]$")


class Messages(Dataset):
    def __init__(self, n=800):
        rng = random.Random(2)
        self.items = []
        for i in range(n):
            spam = rng.random() < 0.5
            pool = WORDS[9:] + WORDS[:3] if spam else WORDS[:10]
            text = " ".join(rng.choices(pool, k=rng.randint(4, 9))) + rng.choice(".!")
            self.items.append((text, int(spam)))
        self.items[530] = ("free " + "z" * 60 + " now 1", 1)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        text, label = self.items[i]
        clean = SENTENCE.match(text) is not None
        counts = torch.tensor([float(text.count(word)) for word in WORDS] + [float(clean)])
        return counts, label


def heartbeat():
    began = time.monotonic()
    while True:
        time.sleep(2)
        print(f"alive, {time.monotonic() - began:.0f} s", flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    threading.Thread(target=heartbeat, daemon=True).start()
    loader = DataLoader(Messages(), batch_size=25)
    model = nn.Linear(len(WORDS) + 1, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        for i, (counts, labels) in enumerate(loader):
            loss = criterion(model(counts), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 8 == 0:
                print(f"epoch {epoch} batch {i} loss {loss.item():.4f}", flush=True)
    print("trained")


if __name__ == "__main__":
    main()
