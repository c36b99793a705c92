"""One batch of outliers throws the loss up a thousandfold; gradient clipping holds and it comes back within some steps."""
import torch
from torch import nn


def batch(step, g, n=48):
    x = torch.randn(n, 6, generator=g)
    if step in (80, 81):
        x = x * 60
    return x, x[:, :1] - 0.5 * x[:, 1:2] + 0.3 * x[:, 2:3].abs()


def main():
    torch.manual_seed(12)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(12)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step in range(240):
        x, y = batch(step, g)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0 or 78 <= step < 88:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
