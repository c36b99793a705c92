"""Point detector: where are the blobs in a noisy image? One heat map, dense binary targets."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class HeatmapNet(nn.Module):
    def __init__(self, prior=0.01):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(inplace=True),
        )
        self.head = nn.Conv2d(16, 1, 1)
        self.reset(-math.log((1 - prior) / prior))

    def reset(self, bias):
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight)
        nn.init.constant_(self.head.bias, bias)

    def forward(self, x):
        return self.head(self.backbone(x)).squeeze(1)


def make_images(n=512, size=20, blobs=6):
    heat = torch.zeros(n, size, size)
    for i in range(n):
        ys, xs = torch.randint(2, size - 2, (2, blobs))
        heat[i, ys, xs] = 1.0
    kernel = torch.tensor([[0.3, 0.5, 0.3], [0.5, 1.0, 0.5], [0.3, 0.5, 0.3]]).view(1, 1, 3, 3)
    images = F.conv2d(heat.unsqueeze(1), kernel, padding=1) + 0.1 * torch.randn(n, 1, size, size)
    return images, heat


@torch.no_grad()
def f1_score(model, images, heat):
    pred = model(images) > 0
    hit = (pred & (heat > 0.5)).sum().item()
    return 2 * hit / max(1, pred.sum().item() + heat.sum().item())


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    images, heat = make_images()
    model = HeatmapNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = 0
    for epoch in range(10):
        order = torch.randperm(len(images))
        for idx in order.split(32):
            logits = model(images[idx])
            loss = F.binary_cross_entropy_with_logits(logits, heat[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 20 == 0:
                print(f"[{step:4d}] loss={loss.item():.5f}")
    print(f"f1: {f1_score(model, images[:128], heat[:128]):.3f}")


if __name__ == "__main__":
    main()
