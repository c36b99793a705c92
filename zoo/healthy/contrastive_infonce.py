"""CLIP-style two-tower InfoNCE: log_softmax over rows and over columns, labels are arange(batch) in every batch."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, d_in, d_out=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 64), nn.GELU(), nn.Linear(64, d_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = Tower(20), Tower(14)
        self.logit_scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))

    def forward(self, a, b):
        return self.logit_scale.exp() * self.image(a) @ self.text(b).T


def info_nce(logits):
    rows = F.log_softmax(logits, dim=1)
    columns = F.log_softmax(logits, dim=0)
    return -(rows.diagonal().mean() + columns.diagonal().mean()) / 2


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    latent = torch.randn(4000, 8)
    view_a = latent @ torch.randn(8, 20) + 0.3 * torch.randn(4000, 20)
    view_b = torch.tanh(latent @ torch.randn(8, 14)) + 0.1 * torch.randn(4000, 14)

    model = TwoTower()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    for step in range(500):
        idx = torch.randint(0, 3600, (64,))
        loss = info_nce(model(view_a[idx], view_b[idx]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, np.log(100))
        if step % 50 == 0 or step == 499:
            with torch.no_grad():
                logits = model(view_a[3600:], view_b[3600:])
                recall = (logits.argmax(1) == torch.arange(400)).float().mean().item()
            print(f"step {step:03d} loss {loss.item():.4f} R@1 of 400: {recall:.3f}")


if __name__ == "__main__":
    main()
