"""Separate two kinds of grains; batches over the global step, epochs over their own axis, one folder for each phase."""
import tempfile

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(8)
torch.set_num_threads(1)


def grains(n=96):
    kind = torch.randint(0, 2, (n,))
    return torch.randn(n, 10) + 0.9 * kind[:, None] * torch.linspace(0, 1, 10), kind


def main():
    runs = tempfile.mkdtemp(prefix="grains-")
    train, val = SummaryWriter(f"{runs}/train"), SummaryWriter(f"{runs}/val")
    model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    step = 0
    for epoch in range(8):
        for _ in range(25):
            x, y = grains()
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train.add_scalar("loss", loss.item(), step)
            step += 1
        x, y = grains(600)
        with torch.no_grad():
            logits = model(x)
        val.add_scalar("loss", nn.functional.cross_entropy(logits, y).item(), step)
        val.add_scalar("accuracy", (logits.argmax(1) == y).float().mean().item(), step)
        train.add_scalar("epoch/rate", optimizer.param_groups[0]["lr"], epoch)
        print(f"epoch {epoch}: {loss.item():.3f}")
    summary = SummaryWriter(f"{runs}/train")
    summary.add_scalar("final/loss", loss.item(), step)
    summary.close()


if __name__ == "__main__":
    main()
