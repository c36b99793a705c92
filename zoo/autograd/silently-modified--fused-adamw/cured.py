"""Height map from scattered soundings: data term and smoothness term from one forward."""
import torch
import torch.nn as nn


class HeightField(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, xy):
        return self.net(xy)


def terrain(xy):
    return torch.sin(2 * xy[:, :1]) * torch.cos(1.5 * xy[:, 1:])


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    model = HeightField()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
    for step in range(200):
        xy = torch.rand(64, 2) * 4 - 2
        z = model(xy)
        data = nn.functional.mse_loss(z, terrain(xy))
        smooth = 0.01 * (z[1:] - z[:-1]).abs().mean()
        optimizer.zero_grad()
        (data + smooth).backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step:3d}: data {data.item():.4f} smooth {smooth.item():.5f}")


if __name__ == "__main__":
    main()
