"""Texture synthesis: a small generator learns to paint images whose filter statistics equal those of a given texture."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE = 32


class Painter(nn.Module):
    def __init__(self, noise=8, width=10):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(noise, width, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(width, 3, 3, padding=1),
        )

    def forward(self, z):
        return self.body(z)


def gram_matrix(feats):
    feats = feats.transpose(0, 1).flatten(1)
    feats = feats / feats.shape[1] ** 0.5
    gram = feats @ feats.t()
    return gram


def waves():
    r = torch.linspace(0, 15, SIDE)
    return torch.stack([torch.sin(r[:, None] + s * r[None, :]) for s in (-0.5, 0.0, 0.5, 1.0)])


def texture():
    stripes = waves()[2]
    return torch.stack([5.5 * stripes, 3.0 * stripes, 2.0 - 2.0 * stripes])[None]


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    features = nn.Conv2d(3, 12, 5, padding=2, bias=False).requires_grad_(False)
    nn.init.normal_(features.weight, std=0.2)
    painter = Painter()
    optimizer = torch.optim.Adam(painter.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    with torch.no_grad():
        ground = waves().expand(4, -1, -1, -1)
        f = features(texture())[0].flatten(1)
        wanted = f @ f.t() / f.shape[1]
    for it in range(60):
        with torch.autocast("cpu", dtype=torch.float16):
            canvas = painter(torch.cat([torch.randn(4, 4, SIDE, SIDE), ground], dim=1))
            loss = F.mse_loss(gram_matrix(features(canvas)), wanted)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if it % 4 == 0:
            print(f"it {it:3d}  style {loss.item():10.3f}  scale {scaler.get_scale():g}")


if __name__ == "__main__":
    main()
