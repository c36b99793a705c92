"""No optimizer object at all: weights are updated by hand under no_grad and gradients cleared by hand."""
import torch
import torch.nn as nn


class TwoLayer(nn.Module):
    def __init__(self, D_in=10, H=80, D_out=1):
        super().__init__()
        self.linear1 = nn.Linear(D_in, H)
        self.linear2 = nn.Linear(H, D_out)

    def forward(self, x):
        return self.linear2(torch.tanh(self.linear1(x)))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    N, learning_rate = 1200, 0.05
    x = torch.randn(N, 10)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3] + 0.05 * torch.randn(N, 1)
    model = TwoLayer()

    for t in range(2001):
        batch = torch.randint(N, (64,))
        y_pred = model(x[batch])
        loss = (y_pred - y[batch]).pow(2).mean()
        if t % 200 == 0:
            print(t, "loss:", loss.item())

        loss.backward()
        with torch.no_grad():
            for param in model.parameters():
                param -= learning_rate * param.grad
                param.grad = None

    with torch.no_grad():
        print("final mse", (model(x) - y).pow(2).mean().item(), "variance of y", y.var().item())


if __name__ == "__main__":
    main()
