import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, inputs=40, dim=64):
        super().__init__()
        self.inp = nn.Linear(inputs, dim)
        self.hidden = nn.Linear(dim, dim)

    def forward(self, x):
        return F.relu(self.hidden(F.relu(self.inp(x))))


class TaskModel(nn.Module):
    """An encoder with an adapter and a classifier on top."""

    def __init__(self, encoder, dim, bottleneck, num_labels):
        super().__init__()
        self.encoder = encoder
        self.down = nn.Linear(dim, bottleneck)
        self.up = nn.Linear(bottleneck, dim)
        self.classifier = nn.Linear(dim, num_labels)

    def forward(self, x):
        adapted = self.up(torch.tanh(self.down(self.encoder(x))))
        return self.classifier(adapted)


def get_batch(prototypes, size):
    y = torch.randint(0, len(prototypes), (size,))
    return prototypes[y] + 0.4 * torch.randn(size, prototypes.shape[1]), y


def train(model, optimizer, prototypes, steps):
    model.train()
    ema = None
    for step in range(1, steps + 1):
        x, y = get_batch(prototypes, 64)
        loss = F.nll_loss(F.log_softmax(model(x), dim=-1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
        if step % 50 == 0:
            print(f"step {step}: loss {ema:.4f}")


def main():
    torch.manual_seed(21)
    prototypes = torch.randn(10, 40)
    encoder = Encoder()
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)
    model = TaskModel(encoder, dim=64, bottleneck=3, num_labels=10)
    train(model, optimizer, prototypes, steps=400)

    model.eval()
    x, y = get_batch(prototypes, 1000)
    with torch.no_grad():
        print(f"accuracy {(model(x).argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
