"""Three user-written autograd Functions whose backwards are right: a softplus, a fused linear layer, a clamp with saved mask."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SoftPlus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return F.softplus(x, beta=beta)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * torch.sigmoid(ctx.beta * x), None


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x, grad.sum(0)


class Band(torch.autograd.Function):
    """Clamp that changes its input in place and says so."""

    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward((x > low) & (x < high))
        ctx.mark_dirty(x)
        return x.clamp_(low, high)

    @staticmethod
    def backward(ctx, grad):
        inside, = ctx.saved_tensors
        return grad * inside, None, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(32, 6) * 0.4), nn.Parameter(torch.zeros(32))
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        h = Affine.apply(x, self.weight, self.bias)
        return self.out(SoftPlus.apply(Band.apply(h, -4.0, 4.0), 2.0))


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    for step in range(200):
        x = torch.randn(48, 6)
        loss = F.mse_loss(model(x), (x[:, :1] * x[:, 1:2]).tanh())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
