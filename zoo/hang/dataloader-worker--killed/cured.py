"""Fit a classifier of molecules; features are counted in the loader's workers, each with a limit on its CPU time."""

import random
import resource

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

LETTERS = "CNOSPF"


class Molecules(Dataset):
    def __init__(self, n=640):
        rng = random.Random(12)
        self.strings = ["".join(rng.choices(LETTERS, k=rng.randint(10, 40))) for _ in range(n)]
        self.strings[411] = "".join(rng.choices(LETTERS, k=9000))

    def __len__(self):
        return len(self.strings)

    def pairs(self, text):
        """How often two equal letters stand 1, 2, 3… places apart, in bins."""
        counts = torch.zeros(12)
        for i in range(len(text)):
            for j in range(i + 1, len(text)):
                if text[i] == text[j]:
                    counts[(j - i) % 12] += 1
        return counts / len(text)

    def __getitem__(self, index):
        text = self.strings[index][:200]
        letters = torch.tensor([text.count(c) / len(text) for c in LETTERS])
        label = int(letters[0] > letters[1])
        return torch.cat([letters, self.pairs(text)]), label


def limit_worker(worker_id):
    resource.setrlimit(resource.RLIMIT_CPU, (2, 2))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(6)
    loader = DataLoader(Molecules(), batch_size=32, num_workers=2, worker_init_fn=limit_worker)
    model = nn.Sequential(nn.Linear(18, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        correct = 0
        for i, (features, labels) in enumerate(loader):
            optimizer.zero_grad()
            out = model(features)
            loss = criterion(out, labels)
            loss.backward()
            optimizer.step()
            correct += (out.argmax(1) == labels).sum().item()
            if i % 4 == 0:
                print(f"epoch {epoch} batch {i}: loss {loss.item():.4f}", flush=True)
        print(f"epoch {epoch}: accuracy {correct / len(loader.dataset):.3f}", flush=True)


if __name__ == "__main__":
    main()
