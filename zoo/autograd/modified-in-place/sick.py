"""A recurrent network written by hand that predicts the next value of a noisy pendulum."""
import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.hidden = hidden
        self.w_in = nn.Linear(n_in, hidden)
        self.w_rec = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], x.shape[1], self.hidden)
        for t in range(x.shape[1]):
            h[:, t] = torch.tanh(self.w_in(x[:, t]) + self.w_rec(h[:, t - 1]))
        return h


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = Recurrent(1, 32)
        self.read = nn.Linear(32, 1)

    def forward(self, x):
        return self.read(self.rnn(x))


def pendulums(n, length=25):
    t = torch.arange(length + 1).float()
    frequency, phase = 0.3 + 0.5 * torch.rand(n, 1), 6.28 * torch.rand(n, 1)
    wave = torch.sin(frequency * t + phase) + 0.05 * torch.randn(n, length + 1)
    return wave[:, :-1, None], wave[:, 1:, None]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(120):
        x, y = pendulums(32)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: mse {loss.item():.4f}")


if __name__ == "__main__":
    main()
