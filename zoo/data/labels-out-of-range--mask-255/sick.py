"""Binary segmentation of discs with 8-bit masks."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Discs(Dataset):
    def __init__(self, n, size=20):
        r = torch.arange(size).float()
        yy, xx = torch.meshgrid(r, r, indexing="ij")
        center = 4 + torch.rand(n, 2) * (size - 8)
        radius = 2 + 2.5 * torch.rand(n)
        distance = ((yy - center[:, 0].view(-1, 1, 1)) ** 2 + (xx - center[:, 1].view(-1, 1, 1)) ** 2).sqrt()
        inside = distance < radius.view(-1, 1, 1)
        self.masks = (inside * 255).to(torch.uint8).unsqueeze(1)
        picture = 90 + 60 * inside + 25 * torch.randn(n, size, size)
        self.images = picture.clamp(0, 255).to(torch.uint8).unsqueeze(1)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i].float() / 255
        mask = self.masks[i].float()
        return image, mask


class SegNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, x):
        return self.net(x)


@torch.no_grad()
def iou(model, dataset):
    images, masks = zip(*(dataset[i] for i in range(len(dataset))))
    pred, truth = model(torch.stack(images)) > 0, torch.stack(masks) > 0.5
    return ((pred & truth).sum() / (pred | truth).sum()).item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_set, val_set = Discs(480), Discs(80)
    loader = DataLoader(train_set, batch_size=24, shuffle=True)
    model = SegNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(9):
        losses = []
        for image, mask in loader:
            optimizer.zero_grad()
            loss = criterion(model(image), mask)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"Epoch {epoch + 1}/9 - loss: {sum(losses) / len(losses):.4f} - val IoU: {iou(model, val_set):.3f}")


if __name__ == "__main__":
    main()
