"""Two DataLoader workers with their own random state each, augmentation in the workers, persistent over epochs."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def seed_worker(worker_id):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)


class Waves(Dataset):
    """Classify a noisy wave as sine, square or sawtooth; phase and noise are drawn in the worker."""

    def __init__(self, n, augment=True):
        self.n, self.augment = n, augment
        self.t = np.linspace(0, 4 * np.pi, 48, dtype=np.float32)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        label = i % 3
        rng = np.random if self.augment else np.random.RandomState(10_000 + i)
        t = self.t + rng.uniform(0, 2 * np.pi)
        wave = (np.sin(t), np.sign(np.sin(t)), (t / np.pi) % 2 - 1)[label]
        wave = wave + 0.3 * rng.standard_normal(len(t))
        return torch.from_numpy(wave.astype(np.float32))[None], label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 16, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
                                  nn.Conv1d(16, 16, 5, padding=2), nn.ReLU(), nn.AdaptiveMaxPool1d(4), nn.Flatten())
        self.fc = nn.Linear(64, 3)

    def forward(self, x):
        return self.fc(self.conv(x))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    g = torch.Generator()
    g.manual_seed(0)
    train_loader = DataLoader(Waves(2400), batch_size=40, shuffle=True, num_workers=2, worker_init_fn=seed_worker,
                              generator=g, persistent_workers=True)
    val_loader = DataLoader(Waves(300, augment=False), batch_size=100, num_workers=2)

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        model.train()
        running_loss = 0.0
        for i, (inputs, labels) in enumerate(train_loader, 1):
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            if i % 30 == 0:
                print(f"[{epoch + 1}, {i:5d}] loss: {running_loss / 30:.3f}")
                running_loss = 0.0
        model.eval()
        with torch.no_grad():
            correct = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
        print(f"Accuracy on the validation waves: {100 * correct / 300:.1f} %")
    print("Finished Training")


if __name__ == "__main__":
    main()
