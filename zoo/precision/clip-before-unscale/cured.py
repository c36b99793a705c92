"""Trains a small convolutional network on noisy digits drawn with line segments."""

import torch
import torch.nn as nn
import torch.nn.functional as F

SEGMENTS = torch.tensor([[1, 1, 1, 0, 1, 1, 1], [0, 0, 1, 0, 0, 1, 0], [1, 0, 1, 1, 1, 0, 1], [1, 0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 0, 1, 0]]).float()


def digits(n, generator):
    label = torch.randint(0, 5, (n,), generator=generator)
    on = SEGMENTS[label]
    image = torch.zeros(n, 1, 9, 7)
    image[:, 0, 0, 1:6] += on[:, 0, None]
    image[:, 0, 1:4, 0] += on[:, 1, None]
    image[:, 0, 1:4, 6] += on[:, 2, None]
    image[:, 0, 4, 1:6] += on[:, 3, None]
    image[:, 0, 5:8, 0] += on[:, 4, None]
    image[:, 0, 5:8, 6] += on[:, 5, None]
    image[:, 0, 8, 1:6] += on[:, 6, None]
    return image + 0.4 * torch.randn(image.shape, generator=generator), label


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(2)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 4 * 3, 5)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler("cpu")
    for step in range(200):
        image, label = digits(64, generator)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(image), label)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
