"""One optimizer for every layer, each with its own learning rate; the top layer steps on every second batch only."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(12, 64), nn.Linear(64, 64), nn.Linear(64, 3)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    x = torch.randn(3300, 12)
    y = torch.bucketize(x[:, 0] * x[:, 1] + x[:, 2], torch.tensor([-0.5, 0.5]))

    model = Net()
    optimizers = [
        torch.optim.SGD(model.layers[0].parameters(), lr=0.05, momentum=0.9),
        torch.optim.Adam(model.layers[1].parameters(), lr=2e-3),
        torch.optim.RMSprop(model.layers[2].parameters(), lr=1e-3),
    ]
    top = optimizers[-1]
    for epoch in range(8):
        total = 0.0
        for i, idx in enumerate(torch.randperm(3000).split(50)):
            for opt in optimizers[:-1]:
                opt.zero_grad()
            if i % 2 == 0:
                top.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            for opt in optimizers[:-1]:
                opt.step()
            if i % 2 == 1:  # the head averages two batches
                for p in model.layers[-1].parameters():
                    p.grad /= 2
                top.step()
            total += loss.item()
        with torch.no_grad():
            acc = (model(x[3000:]).argmax(-1) == y[3000:]).float().mean()
        print(f"epoch {epoch} | loss {total / 60:.4f} | acc {acc:.3f}")


if __name__ == "__main__":
    main()
