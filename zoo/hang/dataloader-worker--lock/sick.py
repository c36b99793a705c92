"""Train on samples that are kept in a cache; the cache is refreshed in the background between epochs."""

import threading
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class CachedSpectra(Dataset):
    def __init__(self, n=480, bands=32):
        self.n, self.bands = n, bands
        self.lock = threading.Lock()
        self.cache = {}
        self.version = 0

    def __len__(self):
        return self.n

    def measure(self, i):
        g = torch.Generator().manual_seed(1000 * self.version + i)
        label = i % 4
        peak = torch.exp(-((torch.arange(self.bands) - 6.0 * (label + 1)) ** 2) / 8)
        return peak + 0.3 * torch.randn(self.bands, generator=g), label

    def refresh(self, count=60):
        """Measure the first samples anew."""
        reading = threading.Event()

        def work():
            with self.lock:
                reading.set()
                self.version += 1
                for i in range(count):
                    time.sleep(0.02)
                    self.cache[i] = self.measure(i)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        reading.wait()
        return thread

    def __getitem__(self, i):
        with self.lock:
            if i not in self.cache:
                self.cache[i] = self.measure(i)
            return self.cache[i]


def run_epoch(model, loader, optimizer, criterion):
    total, correct = 0.0, 0
    for spectra, labels in loader:
        out = model(spectra)
        loss = criterion(out, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        correct += (out.argmax(1) == labels).sum().item()
    return total / len(loader), correct / len(loader.dataset)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dataset = CachedSpectra()
    loader = DataLoader(dataset, batch_size=24, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        loss, accuracy = run_epoch(model, loader, optimizer, criterion)
        print(f"epoch {epoch}: loss {loss:.4f} accuracy {accuracy:.3f}", flush=True)
        refreshed = dataset.refresh()


if __name__ == "__main__":
    main()
