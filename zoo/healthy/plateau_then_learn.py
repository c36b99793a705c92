"""Small initial weights: the loss stands at ln 5 for the first hundred steps, then escapes the saddle and falls."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SmallInitMLP(nn.Module):
    def __init__(self, std=0.003):
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 5)
        for layer in (self.fc1, self.fc2, self.fc3):
            nn.init.normal_(layer.weight, std=std)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.fc3(torch.tanh(self.fc2(torch.tanh(self.fc1(x)))))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    centers = torch.randn(5, 16)
    y = torch.randint(0, 5, (4000,))
    x = centers[y] + 0.8 * torch.randn(4000, 16)

    model = SmallInitMLP()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.04, momentum=0.9)
    print(f"ln 5 = {math.log(5):.4f}")
    for step in range(600):
        idx = torch.randint(0, 3500, (64,))
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == 599:
            print(f"step {step:4d}: loss = {loss.item():.4f}")
    with torch.no_grad():
        print(f"test accuracy {(model(x[3500:]).argmax(1) == y[3500:]).float().mean():.3f}")


if __name__ == "__main__":
    main()
