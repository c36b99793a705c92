import torch
import torch.nn as nn


class GatedUnit(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        h = x @ self.weight + self.bias
        return h * torch.sigmoid(h)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.unit1 = GatedUnit(40, 32)
        self.unit2 = GatedUnit(32, 4)
        self.norm = nn.LayerNorm(4)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.norm(self.unit2(self.unit1(x))))


def energy(n, direction):
    x = torch.randn(n, 40)
    return x, torch.tanh(x @ direction).unsqueeze(1) * 2 + 0.1 * torch.randn(n, 1)


def main():
    torch.manual_seed(27)
    direction = torch.randn(40) / 4
    x, y = energy(3000, direction)
    x_test, y_test = energy(1000, direction)
    model = Regressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.MSELoss()
    for epoch in range(12):
        losses = []
        for i in torch.randperm(len(x)).split(100):
            optimizer.zero_grad()
            loss = criterion(model(x[i]), y[i])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1:2d} mse_loss {sum(losses) / len(losses):.4f}")
    with torch.no_grad():
        print(f"test r2 {1 - (criterion(model(x_test), y_test) / y_test.var()).item():.3f}")


if __name__ == "__main__":
    main()
