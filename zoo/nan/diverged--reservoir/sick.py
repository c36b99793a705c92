"""Adding problem with a linear recurrent network."""
import math
import sys

import torch
from torch import nn


class LinearRNN(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.inp = nn.Linear(2, hidden)
        self.rec = nn.Linear(hidden, hidden, bias=False)
        self.out = nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.rec.weight)

    def forward(self, x):
        h = torch.zeros(x.shape[0], self.rec.in_features)
        for t in range(x.shape[1]):
            h = self.rec(h) + self.inp(x[:, t])
        return self.out(h)


def adding(n, length=12):
    value = torch.rand(n, length) - 0.5
    marker = torch.zeros(n, length)
    marker.scatter_(1, torch.rand(n, length).argsort(1)[:, :2], 1.0)
    return torch.stack([value * marker, marker], dim=2), (value * marker).sum(1, keepdim=True)


torch.manual_seed(7)
torch.set_num_threads(1)
net = LinearRNN()
optimizer = torch.optim.SGD(net.parameters(), lr=0.007, momentum=0.9)
for step in range(150):
    x, y = adding(32)
    loss = ((net(x) - y) ** 2).mean()
    if math.isnan(loss.item()):
        sys.exit("training diverged")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}") if step % 3 == 0 else None
