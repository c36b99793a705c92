"""Layers under weight_norm and spectral_norm: the weight itself is no parameter and is recomputed in every forward."""
import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = weight_norm(nn.Linear(8, 64))
        self.mid = spectral_norm(nn.Linear(64, 64))
        self.out = weight_norm(nn.Linear(64, 1))

    def forward(self, x):
        x = nn.functional.elu(self.inp(x))
        x = nn.functional.elu(self.mid(x))
        return self.out(x)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(31)
    x = torch.randn(2600, 8)
    y = (x[:, :2].prod(1) + 0.5 * x[:, 2].abs() - x[:, 3]).unsqueeze(1) + 0.05 * torch.randn(2600, 1)
    x, x_val, y, y_val = x[:2200], x[2200:], y[:2200], y[2200:]

    model = Critic()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.SmoothL1Loss()
    for epoch in range(15):
        model.train()
        perm, total = torch.randperm(len(x)), 0.0
        for i in range(0, len(x), 55):
            idx = perm[i:i + 55]
            loss = loss_fn(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(x_val), y_val).item()
            sigma = torch.linalg.matrix_norm(model.mid.weight, 2).item()
        print(f"epoch={epoch} loss={total / 40:.5f} val_loss={val:.5f} sigma={sigma:.3f}")


if __name__ == "__main__":
    main()
