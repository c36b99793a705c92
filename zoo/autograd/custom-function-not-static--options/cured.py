"""Learns under rounding: the output is rounded to half units, the gradient passes."""
import torch
import torch.nn as nn


class RoundTo(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, digits):
        return torch.round(x * digits) / digits

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class Rounded(nn.Module):
    def __init__(self, digits):
        super().__init__()
        self.digits = digits

    def forward(self, x):
        return RoundTo.apply(x, self.digits)


class Job:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1), Rounded(2))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=5e-3)

    def go(self):
        for i in range(150):
            x = torch.rand(48, 3) * 2
            y = (x.prod(1, keepdim=True) * 2).round() / 2
            loss = (self.model(x) - y).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if i % 30 == 0:
                print("iter", i, "mse", f"{loss.item():.4f}")


torch.manual_seed(0)
torch.set_num_threads(1)
Job().go()
