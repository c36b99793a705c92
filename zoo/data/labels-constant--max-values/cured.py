"""Small convnet on 10x10 glyphs; the label file is one-hot encoded."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Glyphs(Dataset):
    def __init__(self, images, onehot):
        self.images = images
        self.labels = torch.max(onehot, dim=1)[1].long()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class GlyphNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3)
        self.fc1 = nn.Linear(12 * 4 * 4, 48)
        self.fc2 = nn.Linear(48, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def make_glyphs(n, classes=8):
    shapes = (torch.rand(classes, 10, 10) > 0.6).float()
    kind = torch.randint(classes, (n,))
    images = shapes[kind] + 0.5 * torch.randn(n, 10, 10)
    return images.unsqueeze(1), F.one_hot(kind, classes).float()


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    images, onehot = make_glyphs(2000)
    loader = DataLoader(Glyphs(images[:1600], onehot[:1600]), batch_size=40, shuffle=True)
    model = GlyphNet(classes=8)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(4):
        for i, (image, label) in enumerate(loader):
            opt.zero_grad()
            loss = F.cross_entropy(model(image), label)
            loss.backward()
            opt.step()
            if i % 10 == 9:
                print(f"epoch {epoch} [{i + 1:2d}/{len(loader)}] loss: {loss.item():.4f}")
    with torch.no_grad():
        hits = (model(images[1600:]).argmax(1) == onehot[1600:].argmax(1)).float().mean()
    print(f"test accuracy: {hits.item():.3f}")


if __name__ == "__main__":
    main()
