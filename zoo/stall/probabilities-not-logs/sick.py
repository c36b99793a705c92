"""Tells five kinds of soil from their reflectance at eighteen wavelengths."""

import torch
import torch.nn.functional as F
from torch import nn, optim

KINDS, BANDS = 5, 18


class Soil(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.first = nn.Linear(BANDS, width)
        self.second = nn.Linear(width, width)
        self.kinds = nn.Linear(width, KINDS)

    def forward(self, bands):
        hidden = F.relu(self.first(bands))
        hidden = F.relu(self.second(hidden))
        return torch.softmax(self.kinds(hidden), dim=1)


def samples(count, generator):
    typical = torch.randn(KINDS, BANDS, generator=torch.Generator().manual_seed(21))
    kind = torch.randint(KINDS, (count,), generator=generator)
    return typical[kind] + 1.2 * torch.randn(count, BANDS, generator=generator), kind


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(6)
    net, criterion = Soil(), nn.NLLLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.8)
    bands, kind = samples(500, torch.Generator().manual_seed(7))
    for step in range(300):
        x, y = samples(40, generator)
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == 299:
            with torch.no_grad():
                right = (net(bands).argmax(1) == kind).float().mean().item()
            print(f"{step:3d} loss {loss.item():.4f} right {right:.3f}")


if __name__ == "__main__":
    main()
