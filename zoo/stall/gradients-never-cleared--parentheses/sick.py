"""Next-value prediction on a damped oscillator with an RNN."""

import argparse

import torch
from torch import nn


class Predictor(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.RNN(1, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.readout(h)


def oscillations(n, length=21):
    t = torch.arange(length, dtype=torch.float32)
    freq = 0.4 + 0.4 * torch.rand(n, 1)
    phase = 6.28 * torch.rand(n, 1)
    return (torch.exp(-0.03 * t) * torch.sin(freq * t + phase)).unsqueeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--hidden", type=int, default=24)
    ap.add_argument("--lr", type=float, default=0.08)
    ap.add_argument("--iters", type=int, default=400)
    args = ap.parse_args()

    torch.manual_seed(50)
    net = Predictor(args.hidden)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr)
    mse = nn.MSELoss()
    for it in range(args.iters):
        batch = oscillations(32)
        opt.zero_grad
        loss = mse(net(batch[:, :-1]), batch[:, 1:])
        loss.backward()
        opt.step()
        if it % 40 == 0 or it == args.iters - 1:
            print(f"iter {it}: loss {loss.item():.4f}")
    with torch.no_grad():
        batch = oscillations(200)
        print(f"rmse {mse(net(batch[:, :-1]), batch[:, 1:]).sqrt().item():.4f}")


if __name__ == "__main__":
    main()
