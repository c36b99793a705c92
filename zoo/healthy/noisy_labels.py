"""A hard task: 60 % of the labels are random, so the loss falls slowly and stays high while test accuracy climbs."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(7)

CLASSES = 8


def main():
    teacher = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, CLASSES))
    with torch.no_grad():
        teacher[0].weight.mul_(1.5)
        x = torch.randn(9000, 20)
        out = teacher(x)
        clean = (out - out.mean(0)).div(out.std(0)).argmax(1)
    noisy = torch.where(torch.rand(9000) < 0.6, torch.randint(0, CLASSES, (9000,)), clean)

    train = DataLoader(TensorDataset(x[:8000], noisy[:8000]), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=1e-3)

    for epoch in range(8):
        avg = 0.0
        for xb, yb in train:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            avg += loss.item()
        with torch.no_grad():
            acc = (model(x[8000:]).argmax(1) == clean[8000:]).float().mean().item()
        print(f"Epoch {epoch}: train loss {avg / len(train):.4f}, accuracy on clean test labels {acc:.3f}")


if __name__ == "__main__":
    main()
