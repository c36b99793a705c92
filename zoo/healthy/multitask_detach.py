"""Two heads on one trunk; the second head reads detached features on purpose and must not disturb the trunk."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    epochs: int = 7
    batch_size: int = 64
    lr: float = 3e-3
    quality_weight: float = 0.5
    seed: int = 11


class Readings(Dataset):
    """A class label, and a noise level that the second head has to estimate."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        basis = torch.randn(4, 24, generator=torch.Generator().manual_seed(77))
        self.label = torch.randint(0, 4, (n,), generator=g)
        self.noise = torch.rand(n, 1, generator=g)
        self.x = 0.35 * basis[self.label] + self.noise * torch.randn(n, 24, generator=g)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return {"x": self.x[i], "label": self.label[i], "noise": self.noise[i]}


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(24, 96), nn.GELU(), nn.Linear(96, 64), nn.GELU())
        self.classifier = nn.Linear(64, 4)
        self.quality = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, x):
        h = self.trunk(x)
        return self.classifier(h), self.quality(h.detach())


def main(cfg=Config()):
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    train = DataLoader(Readings(3000, 1), batch_size=cfg.batch_size, shuffle=True)
    valid = DataLoader(Readings(500, 2), batch_size=250)
    net = TwoHeads()
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr)

    for epoch in range(cfg.epochs):
        net.train()
        sums = torch.zeros(2)
        for batch in train:
            logits, quality = net(batch["x"])
            ce = F.cross_entropy(logits, batch["label"])
            mse = F.mse_loss(quality, batch["noise"])
            loss = ce + cfg.quality_weight * mse
            opt.zero_grad()
            loss.backward()
            opt.step()
            sums += torch.tensor([ce.item(), mse.item()])
        net.eval()
        hits = 0
        with torch.no_grad():
            for batch in valid:
                hits += (net(batch["x"])[0].argmax(1) == batch["label"]).sum().item()
        ce, mse = (sums / len(train)).tolist()
        print(f"[{epoch + 1:02d}/{cfg.epochs}] loss={ce + cfg.quality_weight * mse:.4f} ce={ce:.4f} "
              f"quality={mse:.4f} val_acc={hits / 500:.3f}")


if __name__ == "__main__":
    main()
