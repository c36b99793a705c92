"""Regression of the drag of wing profiles with a memory-saving activation."""
import torch
import torch.nn as nn


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


class MemoryEfficientSwish(nn.Module):
    def forward(self, x):
        return Swish.apply(x)


def profiles(n):
    x = torch.rand(n, 5) * 2 - 1
    lift = torch.sin(2 * x[:, 0]) + x[:, 1]
    return x, (0.1 + 0.5 * lift ** 2 + 0.3 * x[:, 2] * x[:, 3] - 0.2 * x[:, 4]).unsqueeze(1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(5, 64), MemoryEfficientSwish(), nn.Linear(64, 64), MemoryEfficientSwish(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x_val, y_val = profiles(500)
    for step in range(300):
        x, y = profiles(64)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            with torch.no_grad():
                error = nn.functional.mse_loss(model(x_val), y_val)
            print(f"step {step + 1}: train {loss.item():.4f} val {error.item():.4f}")


if __name__ == "__main__":
    main()
