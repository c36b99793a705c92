"""Short training with a steep step schedule: one epoch at 0.3, one at 0.03, and so on."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class MLP(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(features, hidden), nn.Linear(hidden, hidden)])
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.out(x)


def spirals(n, arms=3):
    arm = torch.randint(arms, (n,))
    r = torch.rand(n)
    angle = 4 * r + arm * (6.2832 / arms) + 0.12 * torch.randn(n)
    return TensorDataset(torch.stack([r * angle.cos(), r * angle.sin()], dim=1) * 2, arm)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    loader = DataLoader(spirals(4800), batch_size=24, shuffle=True)
    model = MLP(2, 64, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    for epoch in range(4):
        scheduler.step()
        total, hits = 0.0, 0
        for x, arm in loader:
            optimizer.zero_grad()
            out = model(x)
            loss = F.cross_entropy(out, arm)
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (out.argmax(1) == arm).sum().item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f} acc {hits / len(loader.dataset):.3f}")


if __name__ == "__main__":
    main()
