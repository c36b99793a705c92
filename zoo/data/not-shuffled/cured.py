"""Classify leaves from shape features."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Leaves(Dataset):
    species = ["oak", "maple", "birch", "beech", "linden"]

    def __init__(self, per_class, seed):
        g = torch.Generator().manual_seed(seed)
        prototypes = torch.randn(len(self.species), 14, generator=torch.Generator().manual_seed(5))
        self.samples = []
        for label, _ in enumerate(self.species):
            for _ in range(per_class):
                self.samples.append((prototypes[label] + 1.2 * torch.randn(14, generator=g), label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_loader = DataLoader(Leaves(400, seed=1), batch_size=32, shuffle=True)
    test_loader = DataLoader(Leaves(80, seed=2), batch_size=200)
    model = nn.Sequential(nn.Linear(14, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 5))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(4):
        model.train()
        losses = []
        for i, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if i % 10 == 0:
                print(f"  epoch {epoch} batch {i:2d} loss {loss.item():.4f}")
        mean = sum(losses) / len(losses)
        print(f"epoch {epoch} mean loss {mean:.4f} test accuracy {evaluate(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
