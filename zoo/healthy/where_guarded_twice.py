"""log and square root behind guards that hold in backward too: the argument is made safe before the function is applied."""
import torch
import torch.nn as nn


def safe_log(x):
    positive = x > 0
    return torch.where(positive, torch.log(torch.where(positive, x, torch.ones_like(x))), torch.zeros_like(x))


def safe_sqrt(x):
    positive = x > 0
    return torch.where(positive, torch.sqrt(torch.where(positive, x, torch.ones_like(x))), torch.zeros_like(x))


class Features(nn.Module):
    """Rectified sensors, of which many are exactly zero."""

    def __init__(self, n_in=8, width=24):
        super().__init__()
        self.mix = nn.Linear(n_in, width)
        self.read = nn.Linear(2 * width, 1)

    def forward(self, x):
        h = torch.relu(self.mix(x))
        return self.read(torch.cat([safe_log(1 + h) * (h > 0), safe_sqrt(h)], dim=1))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    w = torch.rand(8, 1)
    model = Features()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(200):
        x = torch.randn(64, 8)
        y = safe_sqrt(torch.relu(x) @ w)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 40 == 0:
            print(f"{step:4d} {loss.item():.5f}")


if __name__ == "__main__":
    main()
