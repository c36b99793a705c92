"""Classifier with a max-norm constraint on its rows."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def constrain(model, limit=0.5):
    for layer in model:
        if isinstance(layer, nn.Linear):
            scale = (limit / layer.weight.data.norm(dim=1, keepdim=True)).clamp(max=1.0)
            layer.weight.data.mul_(scale)


def train_epoch(model, optimizer, x, y):
    for rows in torch.randperm(len(x)).split(40):
        loss = F.cross_entropy(4 * model(x[rows]), y[rows])
        constrain(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    centres = torch.randn(6, 10)
    y = torch.randint(0, 6, (1200,))
    x = centres[y] + 0.6 * torch.randn(1200, 10)
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 6))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(8):
        loss = train_epoch(model, optimizer, x, y)
        with torch.no_grad():
            accuracy = (model(x).argmax(1) == y).float().mean()
        print(f"epoch {epoch}: loss {loss:.4f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
