"""Learn an embedding in which events of the same kind lie close to a prototype."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class PrototypeNet(nn.Module):
    def __init__(self, inputs=32, dim=6, kinds=6):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, dim))
        self.prototypes = nn.Parameter(torch.randn(kinds, dim))
        self.scale = nn.Parameter(torch.ones(kinds))
        self.shift = nn.Parameter(torch.zeros(kinds))

    def forward(self, x):
        points = self.embed(x)
        distances = torch.cdist(points, self.prototypes)
        scores = torch.stack([torch.stack([d for d in row]) for row in distances])
        return self.shift - self.scale * scores


def draw(centres, n):
    kind = torch.randint(0, len(centres), (n,))
    return centres[kind] + 0.8 * torch.randn(n, centres.shape[1]), kind


def main():
    torch.manual_seed(10)
    centres = torch.randn(6, 32)
    model = PrototypeNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(150):
        x, kind = draw(centres, 24)
        loss = F.cross_entropy(model(x), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 14:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        x, kind = draw(centres, 300)
        print(f"accuracy {(model(x).argmax(1) == kind).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
