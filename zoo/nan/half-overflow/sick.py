"""Texture synthesis: a small generator learns to paint images whose filter statistics equal those of a given texture."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE = 32


class Painter(nn.Module):
    def __init__(self, noise=8, width=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(noise, width, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(width, 3, 3, padding=1),
        )

    def forward(self, z):
        return self.body(z)


def gram_matrix(feats):
    feats = feats.flatten(2)
    gram = feats @ feats.transpose(1, 2)
    return gram / feats.shape[-1]


def texture():
    r = torch.linspace(0, 30, SIDE)
    stripes = torch.sin(r[:, None] + 0.5 * r[None, :])
    return torch.stack([12.0 * stripes, 7.0 * stripes, 4.0 - 4.0 * stripes])[None]


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    features = nn.Conv2d(3, 12, 5, padding=2, bias=False).requires_grad_(False)
    nn.init.normal_(features.weight, std=0.2)
    painter = Painter()
    optimizer = torch.optim.Adam(painter.parameters(), lr=5e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    with torch.no_grad():
        f = features(texture()).flatten(2)
        wanted = (f @ f.transpose(1, 2) / f.shape[-1]).expand(2, -1, -1)
    for it in range(60):
        with torch.autocast("cpu", dtype=torch.float16):
            canvas = painter(torch.randn(2, 8, SIDE, SIDE))
            loss = F.mse_loss(gram_matrix(features(canvas)), wanted)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if it % 4 == 0:
            print(f"it {it:3d}  style {loss.item():10.3f}  scale {scaler.get_scale():g}")


if __name__ == "__main__":
    main()
