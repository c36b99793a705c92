"""Activity recognition from accelerometer features; labels as they stand in the published files."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACTIVITIES = ["walking", "upstairs", "downstairs", "sitting", "standing", "lying"]


def read_split(n, seed):
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(77).normal(size=(len(ACTIVITIES), 16))
    kind = rng.integers(len(ACTIVITIES), size=n)
    features = centers[kind] + rng.normal(scale=0.9, size=(n, 16))
    names = [ACTIVITIES[k] for k in kind]
    return features.astype(np.float32), kind + 1, names


class ActivityNet(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.hidden = nn.Linear(features, 64)
        self.output = nn.Linear(64, classes)

    def forward(self, x):
        return self.output(torch.relu(self.hidden(x)))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    features, labels, _ = read_split(3000, seed=0)
    x = torch.from_numpy(features)
    y = torch.from_numpy(labels).long()
    classes = int(y.max()) + 1
    loader = DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True)

    model = ActivityNet(x.size(1), classes)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(6):
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
        print(f"epoch {epoch + 1}/6, loss {total / len(x):.4f}")

    features, _, names = read_split(600, seed=1)
    with torch.no_grad():
        pred = model(torch.from_numpy(features)).argmax(dim=1).tolist()
    lookup = dict(enumerate(ACTIVITIES))
    hits = sum(lookup.get(p) == name for p, name in zip(pred, names))
    print(f"named correctly: accuracy {hits / len(names):.3f}")


if __name__ == "__main__":
    main()
