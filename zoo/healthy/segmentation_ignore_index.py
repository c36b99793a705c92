"""Semantic segmentation with void pixels labelled 255, far outside the range of the classes."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

VOID = 255


class ToyScenes(Dataset):
    """A disc and a rectangle on noise; their outlines are void."""

    def __init__(self, n, seed, size=16):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.items = []
        for _ in range(n):
            cx, cy = torch.randint(3, 13, (2,), generator=g)
            top, left = torch.randint(0, 10, (2,), generator=g)
            d = ((xx - cx) ** 2 + (yy - cy) ** 2).float().sqrt()
            mask = torch.zeros(size, size, dtype=torch.long)
            mask[top:top + 6, left:left + 5] = 2
            mask[d < 3.5] = 1
            image = torch.stack([(mask == 1).float(), (mask == 2).float()])
            image = image + 0.5 * torch.randn(2, size, size, generator=g)
            mask[(d >= 3) & (d < 4)] = VOID
            self.items.append((image, mask))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class MiniUNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.ReLU())
        self.bottom = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
                                    nn.Upsample(scale_factor=2, mode="nearest"))
        self.out = nn.Conv2d(24, classes, 3, padding=1)

    def forward(self, x):
        skip = self.down(x)
        return self.out(torch.cat([skip, self.bottom(skip)], dim=1))


def mean_iou(model, loader, classes=3):
    inter, union = torch.zeros(classes), torch.zeros(classes)
    model.eval()
    with torch.no_grad():
        for image, mask in loader:
            pred, valid = model(image).argmax(1), mask != VOID
            for c in range(classes):
                inter[c] += ((pred == c) & (mask == c) & valid).sum()
                union[c] += (((pred == c) | (mask == c)) & valid).sum()
    return (inter / union).mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(6)
    train_loader = DataLoader(ToyScenes(400, 0), batch_size=16, shuffle=True)
    val_loader = DataLoader(ToyScenes(80, 1), batch_size=40)
    model = MiniUNet()
    criterion = nn.CrossEntropyLoss(ignore_index=VOID)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(1, 11):
        model.train()
        epoch_loss = 0.0
        for image, mask in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(image), mask)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        miou = mean_iou(model, val_loader)
        print(f"Epoch: {epoch:03d} | Loss: {epoch_loss / len(train_loader):.4f} | mIoU: {miou:.4f}")


if __name__ == "__main__":
    main()
