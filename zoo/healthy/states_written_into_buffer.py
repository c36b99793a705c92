"""A recurrent loop that writes its states into a preallocated tensor: permitted, because no operation reads from that tensor on the way."""
import torch
from torch import nn


class Tracker(nn.Module):
    def __init__(self, n_in=2, hidden=24):
        super().__init__()
        self.cell = nn.GRUCell(n_in, hidden)
        self.read = nn.Linear(hidden, n_in)

    def forward(self, x):
        batch, length, _ = x.shape
        states = x.new_zeros(batch, length, self.cell.hidden_size)
        h = x.new_zeros(batch, self.cell.hidden_size)
        for t in range(length):
            h = self.cell(x[:, t], h)
            states[:, t] = h
        return self.read(states)


def circles(n, g, length=12):
    t = torch.arange(length + 1).float()
    speed, phase = 0.2 + 0.5 * torch.rand(n, 1, generator=g), 6.28 * torch.rand(n, 1, generator=g)
    path = torch.stack([torch.cos(speed * t + phase), torch.sin(speed * t + phase)], dim=-1)
    return path[:, :-1] + 0.05 * torch.randn(n, length, 2, generator=g), path[:, 1:]


def main():
    torch.manual_seed(18)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(18)
    model = Tracker()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(120):
        x, y = circles(32, g)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d} mse {loss.item():.4f}")


if __name__ == "__main__":
    main()
