"""In-place operations that autograd permits: ReLU(inplace) after conv, `x += shortcut`, masked_fill_ on logits, add_ on a sum."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.conv2(self.relu(self.conv1(x)))
        out += x
        return self.relu(out)


class Classifier(nn.Module):
    def __init__(self, width=12, classes=6):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, stride=2, padding=1), nn.ReLU(inplace=True))
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.head = nn.Linear(width, classes)

    def forward(self, image, impossible):
        h = self.blocks(self.stem(image)).mean(dim=(2, 3))
        logits = self.head(h)
        logits.masked_fill_(impossible, -1e4)
        return logits


def blobs(n, g, side=16):
    kind = torch.randint(0, 6, (n,), generator=g)
    grid = torch.arange(side).float()
    centre = side / 2 + 2 * torch.randn(n, 2, 1, 1, generator=g)
    distance = (grid[:, None] - centre[:, 0]) ** 2 + (grid[None, :] - centre[:, 1]) ** 2
    image = torch.exp(-distance / (2 + 6 * kind.view(-1, 1, 1).float()))
    impossible = torch.rand(n, 6, generator=g) < 0.3
    impossible[torch.arange(n), kind] = False
    return image.unsqueeze(1) + 0.05 * torch.randn(n, 1, side, side, generator=g), impossible, kind


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(150):
        image, impossible, kind = blobs(32, g)
        logits = model(image, impossible)
        total = F.cross_entropy(logits, kind)
        total += 1e-4 * sum(p.square().sum() for p in model.head.parameters())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step:3d} loss {total.item():.4f} accuracy {(logits.argmax(1) == kind).float().mean():.2f}")


if __name__ == "__main__":
    main()
