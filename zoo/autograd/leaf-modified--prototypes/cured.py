"""Prototype classifier whose prototypes start at the class means."""
import torch
import torch.nn as nn


class Prototypes(nn.Module):
    def __init__(self, classes, dim):
        super().__init__()
        self.embed = nn.Linear(dim, dim)
        self.prototypes = nn.Parameter(torch.randn(classes, dim))

    def start_at(self, means):
        with torch.no_grad():
            for c in range(len(means)):
                self.prototypes[c] = means[c]

    def forward(self, x):
        return -torch.cdist(self.embed(x), self.prototypes)


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    centres = 2 * torch.randn(4, 6)
    y = torch.randint(0, 4, (800,))
    x = centres[y] + torch.randn(800, 6)
    model = Prototypes(4, 6)
    model.start_at(torch.stack([x[y == c].mean(0) for c in range(4)]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        for rows in torch.randperm(800).split(32):
            loss = criterion(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
