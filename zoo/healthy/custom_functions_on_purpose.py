"""Custom Functions whose backward differs from the derivative on purpose: gradient reversal, straight-through rounding, clipping."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class ReverseGradient(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 8) / 8

    @staticmethod
    def backward(ctx, grad):
        return grad


class ClipGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-0.05, 0.05)


class Dann(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 16))
        self.label, self.domain = nn.Linear(16, 4), nn.Linear(16, 2)

    def forward(self, x, strength):
        h = RoundSTE.apply(self.body(x))
        return self.label(h), ClipGradient.apply(self.domain(ReverseGradient.apply(h, strength)))


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    means, shift = torch.randn(4, 12), 0.8 * torch.randn(12)
    model = Dann()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(200):
        y, d = torch.randint(0, 4, (64,)), torch.randint(0, 2, (64,))
        x = means[y] + d[:, None] * shift + 0.5 * torch.randn(64, 12)
        label, domain = model(x, strength=min(1.0, step / 100))
        loss = F.cross_entropy(label, y) + 0.3 * F.cross_entropy(domain, d)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.4f} accuracy {(label.argmax(1) == y).float().mean():.2f}")


if __name__ == "__main__":
    main()
