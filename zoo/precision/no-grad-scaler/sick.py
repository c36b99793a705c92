"""How far a clamped plate bends under a load: the deflection in metres from a map of the load."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SIZE = 12


class PlateNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.encode = nn.Conv2d(1, width, 5, padding=2)
        self.mix = nn.Conv2d(width, width, 5, padding=2)
        self.deflection = nn.Conv2d(width, 1, 5, padding=2)
        nn.init.normal_(self.deflection.weight, std=1e-3)
        nn.init.zeros_(self.deflection.bias)

    def forward(self, load):
        h = F.gelu(self.encode(load))
        return self.deflection(F.gelu(self.mix(h)))


def plates(n):
    g = torch.Generator().manual_seed(3)
    load = torch.rand(n, 1, SIZE, SIZE, generator=g) * (torch.rand(n, 1, SIZE, SIZE, generator=g) > 0.7)
    bend = F.avg_pool2d(F.avg_pool2d(load, 5, 1, 2), 5, 1, 2)
    return TensorDataset(load, 1e-3 * bend)


def main():
    torch.manual_seed(0)
    loader = DataLoader(plates(240), batch_size=24, shuffle=True)
    model = PlateNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)

    for epoch in range(6):
        total = 0.0
        for load, deflection in loader:
            with torch.autocast("cpu", dtype=torch.float16):
                loss = F.mse_loss(model(load), deflection)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: rms error {(total / len(loader)) ** 0.5 * 1e3:.4f} mm")


if __name__ == "__main__":
    main()
