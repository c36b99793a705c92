"""Instrument recognition from spectra; targets come one-hot from the annotation tool."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 10


def make_notes(n, bins=30):
    timbre = torch.rand(CLASSES, bins)
    kind = torch.randint(CLASSES, (n,))
    spectra = timbre[kind] + 0.35 * torch.randn(n, bins)
    return spectra - 0.5, nn.functional.one_hot(kind, CLASSES)


def train(model, loader, epochs, lr):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        running = 0.0
        for spectra, onehot in loader:
            target = onehot.argmax(dim=1)
            optimizer.zero_grad()
            loss = criterion(model(spectra), target)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print("epoch: %d loss: %.4f" % (epoch + 1, running / len(loader)))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    spectra, onehot = make_notes(1500)
    loader = DataLoader(TensorDataset(spectra[:1200], onehot[:1200]), batch_size=10, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    train(model, loader, epochs=4, lr=0.02)
    with torch.no_grad():
        pred = model(spectra[1200:]).argmax(dim=1)
    acc = (pred == onehot[1200:].argmax(dim=1)).float().mean().item()
    print("test accuracy: %.3f" % acc)


if __name__ == "__main__":
    main()
