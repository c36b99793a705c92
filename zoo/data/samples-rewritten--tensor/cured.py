"""Tells nine kinds of bird calls apart from small spectrograms."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

BANDS, FRAMES, KINDS, EPOCHS = 16, 24, 9, 14


class Stripe:
    """Silences some frames, so that the network does not rely on a single moment."""

    def __init__(self, widest):
        self.widest = widest

    def __call__(self, picture):
        width = random.randint(1, self.widest)
        start = random.randint(0, FRAMES - width)
        picture[:, start:start + width] = 0
        return picture


class Calls(Dataset):
    def __init__(self, samples, augment):
        self.samples = samples
        self.augment = augment

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        picture, kind = self.samples[index]
        return self.augment(picture.clone()), kind


def record(count, generator):
    templates = torch.rand(KINDS, BANDS, FRAMES, generator=torch.Generator().manual_seed(77))
    kinds = torch.randint(0, KINDS, (count,), generator=generator)
    pictures = templates[kinds] + 0.9 * torch.randn(count, BANDS, FRAMES, generator=generator)
    return [(picture.clone(), kind) for picture, kind in zip(pictures, kinds.tolist())]


def build():
    return nn.Sequential(
        nn.Unflatten(1, (1, BANDS)),
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * BANDS // 4 * FRAMES // 4, KINDS),
    )


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = sum((model(pictures).argmax(1) == kinds).sum().item() for pictures, kinds in loader)
    model.train()
    return hits / len(loader.dataset)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(8)
    random.seed(8)
    generator = torch.Generator().manual_seed(9)
    calls = Calls(record(1500, generator), Stripe(widest=6))
    train, valid = random_split(calls, [1200, 300], generator=generator)
    train_loader = DataLoader(train, batch_size=30, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=100)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        losses = []
        for pictures, kinds in train_loader:
            loss = nn.functional.cross_entropy(model(pictures), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch:2d}: loss {sum(losses) / len(losses):.4f}, validation accuracy {accuracy(model, valid_loader):.3f}")
    fresh = record(1000, generator)
    pictures, kinds = torch.stack([picture for picture, _ in fresh]), torch.tensor([kind for _, kind in fresh])
    with torch.no_grad():
        print(f"accuracy on new recordings {(model(pictures).argmax(1) == kinds).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
