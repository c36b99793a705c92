"""Predict the quality decile of a product from its measurements."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Quality(Dataset):
    bins = 10

    def __init__(self, n=3200, features=12, seed=0):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, features)).astype(np.float32)
        score = x @ rng.normal(size=features).astype(np.float32)
        score = (score - score.min()) / (score.max() - score.min())
        self.x = x
        self.y = (score * self.bins).astype(np.int64).clip(max=self.bins - 1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    dataset = Quality()
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, dataset.bins))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(5):
        hits, losses = 0, []
        for i, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            logits = model(x)
            loss = criterion(logits, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            hits += (logits.argmax(1) == y).sum().item()
            if i % 25 == 0:
                print(f"epoch {epoch} batch {i:3d} loss {loss.item():.4f}")
        print(f"epoch {epoch} mean loss {np.mean(losses):.4f} accuracy {hits / len(dataset):.3f}")


if __name__ == "__main__":
    main()
