"""Loudness model: an exponential layer with a limiter."""
import torch
import torch.nn as nn


class Limiter(nn.Module):
    def __init__(self, limit=20.0):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        h = torch.exp(x)
        loud = h > self.limit
        if loud.any():
            h = h.masked_fill(loud, self.limit)
        return h


def batch(step, rng, n=32):
    x = torch.randn(n, 6, generator=rng)
    if step >= 37 and step % 4 == 1:
        x[0] *= 9
    return x, x[:, :3].abs().sum(1, keepdim=True)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(2)
    model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 16), Limiter(), nn.Linear(16, 1))
    nn.init.normal_(model[2].weight, std=0.25)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    history = []
    for step in range(150):
        x, y = batch(step, rng)
        loss = nn.functional.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if step % 10 == 0:
            print(f"{step:3d}  {sum(history[-10:]) / len(history[-10:]):.4f}")


if __name__ == "__main__":
    main()
