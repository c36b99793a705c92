"""Compact classes: cross entropy plus the spread of each class in the batch."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(9, 48), nn.ReLU(), nn.Linear(48, 12))
        self.head = nn.Linear(12, 6)

    def forward(self, x):
        z = self.body(x)
        return z, self.head(z)


def compactness(z, label):
    spread = z.new_zeros(())
    for c in label.unique():
        spread = spread + z[label == c].var(dim=0).mean()
    return spread


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    means = torch.randn(6, 9)
    share = torch.tensor([0.22, 0.22, 0.22, 0.19, 0.1, 0.05])
    net = Embedder()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(150):
        label = torch.multinomial(share, 96, replacement=True)
        z, logits = net(means[label] + 0.7 * torch.randn(96, 9))
        loss = F.cross_entropy(logits, label) + 0.05 * compactness(z, label)
        if math.isnan(loss.item()):
            raise FloatingPointError("loss became nan")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
