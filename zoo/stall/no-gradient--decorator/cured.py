import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class TagModel(nn.Module):
    """Predicts several yes/no tags from one record."""

    def __init__(self, inputs=50, tags=6):
        super().__init__()
        self.trunk = nn.Linear(inputs, 40)
        self.bottleneck = nn.Linear(40, 6)
        self.tag_heads = nn.Linear(6, tags)

    def encode(self, x):
        return torch.tanh(self.bottleneck(torch.relu(self.trunk(x))))

    def forward(self, x):
        z = self.encode(x)
        return self.tag_heads(z)


def records(n, inputs=50, tags=6):
    g = torch.Generator().manual_seed(19)
    weights = torch.randn(inputs, tags, generator=g)
    x = torch.randn(n, inputs, generator=g)
    return x, (x @ weights > 0).float()


def main():
    torch.manual_seed(1)
    x, y = records(2400)
    loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True, drop_last=True)
    model = TagModel()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)

    for epoch in range(10):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            acc = ((model(x[2000:]) > 0) == y[2000:].bool()).float().mean().item()
        print(f"Epoch [{epoch + 1}/10] Loss: {total / len(loader):.4f} Acc: {acc:.3f}")


if __name__ == "__main__":
    main()
