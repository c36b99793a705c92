"""A network with binary activations and a straight-through gradient."""
import torch
import torch.nn as nn
from torch.autograd import Function


class SignSTE(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * (x.abs() <= 1).float()


class Binary(nn.Module):
    def forward(self, x):
        return SignSTE.apply(x)


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    teacher = torch.randn(20, 6)
    net = nn.Sequential(nn.Linear(20, 128), Binary(), nn.Linear(128, 6))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    for step in range(200):
        x = torch.randn(64, 20)
        y = (x @ teacher).argmax(1)
        logits = net(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:3d} loss {loss.item():.4f} acc {(logits.argmax(1) == y).float().mean():.3f}")


if __name__ == "__main__":
    main()
