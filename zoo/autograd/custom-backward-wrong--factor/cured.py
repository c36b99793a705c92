"""Temperature field of a plate from its border; own loss function."""
import torch
from torch import nn


class SquaredError(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target):
        ctx.save_for_backward(pred, target)
        return ((pred - target) ** 2).mean()

    @staticmethod
    def backward(ctx, grad_output):
        pred, target = ctx.saved_tensors
        return grad_output * 2 * (pred - target) / pred.numel(), None


def plates(n):
    border = torch.randn(n, 8)
    grid = torch.linspace(0, 3.14, 16)
    field = sum(border[:, k:k + 1] * torch.sin((k + 1) * grid) / (k + 1) for k in range(8))
    return border, field


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(250):
        x, y = plates(32)
        loss = SquaredError.apply(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
