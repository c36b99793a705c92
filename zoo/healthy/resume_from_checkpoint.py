"""Training that stops, saves model, optimizer and scheduler, and resumes in new objects from the checkpoint."""
import tempfile
from pathlib import Path

import torch
import torch.nn as nn


def build(total_steps):
    model = nn.Sequential(nn.Linear(15, 64), nn.ReLU(), nn.Linear(64, 7))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total_steps)
    return model, optimizer, scheduler


def train(x, y, checkpoint, until, total_steps):
    model, optimizer, scheduler = build(total_steps)
    start = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        start = state["step"]
        print(f"=> resumed from step {start}")
    for step in range(start, until):
        idx = torch.randint(0, len(x), (64,))
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 50 == 0 or step == until - 1:
            print(f"step {step} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(), "step": until}, checkpoint)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    y = torch.randint(0, 7, (3000,))
    x = torch.randn(7, 15)[y] + 0.9 * torch.randn(3000, 15)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "last.pt"
        for until in (200, 400, 600):
            train(x, y, checkpoint, until, 600)


if __name__ == "__main__":
    main()
