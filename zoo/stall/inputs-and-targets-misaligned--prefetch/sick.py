"""Image classification with a small prefetching wrapper around the DataLoader."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """12x12 pictures of four textures."""

    def __init__(self, n):
        r = torch.arange(12)
        self.templates = torch.stack([
            ((r % 2) * 1.0).expand(12, 12),
            ((r % 2) * 1.0).view(-1, 1).expand(12, 12),
            ((r.view(-1, 1) + r) % 2).float(),
            ((r.view(-1, 1) // 3 + r // 3) % 2).float(),
        ])
        self.labels = torch.randint(4, (n,))
        self.noise = 0.6 * torch.randn(n, 12, 12)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return (self.templates[self.labels[i]] - 0.5 + self.noise[i]).unsqueeze(0), self.labels[i]


class Prefetcher:
    def __init__(self, loader):
        self.loader = loader

    def __len__(self):
        return len(self.loader) - 1

    def __iter__(self):
        it = iter(self.loader)
        images, labels = next(it)
        for next_images, next_labels in it:
            yield next_images, labels
            images, labels = next_images, next_labels


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = Prefetcher(DataLoader(Shapes(1600), batch_size=50, shuffle=True, drop_last=True))
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(16 * 9, 4),
    )
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(6):
        seen, hits, loss_sum = 0, 0, 0.0
        for images, labels in loader:
            opt.zero_grad()
            out = model(images)
            loss = criterion(out, labels)
            loss.backward()
            opt.step()
            loss_sum += loss.item()
            hits += (out.argmax(1) == labels).sum().item()
            seen += len(labels)
        print("epoch %d | loss %.4f | acc %.3f" % (epoch, loss_sum / len(loader), hits / seen))


if __name__ == "__main__":
    main()
