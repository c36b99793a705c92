"""Learns the constants of a damped oscillator bank, with a hand-written function for the filter."""

import torch
import torch.nn as nn


class Filter(torch.autograd.Function):
    """Long sums of small products, which need all their digits; the gradient of the kernel is kept free of its mean."""

    @staticmethod
    def forward(ctx, x, kernel):
        ctx.save_for_backward(x, kernel)
        with torch.autocast("cpu", enabled=False):
            return x.float() @ kernel

    @staticmethod
    def backward(ctx, grad):
        x, kernel = ctx.saved_tensors
        pull = x.t() @ grad
        return grad @ kernel.t(), pull - pull.mean(0)


class Bank(nn.Module):
    def __init__(self, length=40, outputs=6):
        super().__init__()
        self.kernel = nn.Parameter(0.1 * torch.randn(length, outputs))
        self.read = nn.Linear(outputs, 3)

    def forward(self, signal):
        return self.read(torch.tanh(Filter.apply(signal, self.kernel)))


def signals(n):
    kind = torch.randint(0, 3, (n,))
    t = torch.arange(40) / 40
    frequency = torch.tensor([2.0, 3.5, 6.0])[kind][:, None]
    return torch.sin(6.28 * frequency * t) + 0.3 * torch.randn(n, 40), kind


def main():
    torch.manual_seed(22)
    model = Bank()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(120):
        signal, kind = signals(64)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(signal), kind)
            loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
