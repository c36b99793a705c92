import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def cosine_filters(size=4):
    """The 2-D DCT basis as convolution kernels."""
    n = torch.arange(size)
    basis = torch.cos(math.pi / size * (n[None, :] + 0.5) * n[:, None])
    grid = torch.einsum("ia,jb->ijab", basis, basis)
    return grid[:2, :2].reshape(4, 1, size, size) / size


class SpectralNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 4, stride=4, bias=False)
        with torch.no_grad():
            self.stem.weight.copy_(cosine_filters())
        self.body = nn.Sequential(
            nn.Flatten(),
            nn.Linear(4 * 16, 24),
            nn.ReLU(),
            nn.Linear(24, 24),
            nn.ReLU(),
            nn.Linear(24, 4),
            nn.Tanh(),
        )
        self.classifier = nn.Linear(4, classes)

    def forward(self, x):
        return self.classifier(self.body(self.stem(x)))


def textures(templates, n):
    y = torch.randint(0, len(templates), (n,))
    return templates[y] + 1.2 * torch.randn(n, 1, 16, 16), y


def main():
    torch.manual_seed(4)
    templates = F.interpolate(torch.randn(12, 1, 6, 6), size=16, mode="bilinear")
    model = SpectralNet(classes=12)
    model.body.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    for step in range(300):
        x, y = textures(templates, 32)
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0 or step == 299:
            print(f"{step:>4} loss={loss.item():.4f} acc={(logits.argmax(1) == y).float().mean().item():.3f}")

    with torch.no_grad():
        x, y = textures(templates, 1000)
        print(f"test accuracy: {(model(x).argmax(1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
