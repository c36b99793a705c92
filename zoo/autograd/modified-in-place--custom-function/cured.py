"""Quantised regression network: activations are rounded, the gradient of the scale is learnt."""
import torch
import torch.nn as nn


class Quantise(torch.autograd.Function):
    """Rounding with a straight-through gradient that fades outside of the range."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.step = step
        ctx.save_for_backward(x)
        return x.div(ctx.step).round_().mul_(ctx.step)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * (x.abs() < 1).float(), None


class QuantLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x):
        return Quantise.apply(torch.tanh(self.linear(x)), 0.05)


def main():
    torch.manual_seed(10)
    torch.set_num_threads(1)
    model = nn.Sequential(QuantLinear(6, 32), QuantLinear(32, 32), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    w = torch.randn(6, 1)
    for step in range(150):
        x = torch.randn(64, 6)
        loss = nn.functional.mse_loss(model(x), torch.sin(x @ w))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
