"""Train in two sessions: the second one continues from the first one's checkpoint file."""
import os
import tempfile

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

EPOCHS = 12
STEPS_PER_EPOCH = 40


class RegressionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def factor(step):
    warmup, total = STEPS_PER_EPOCH, EPOCHS * STEPS_PER_EPOCH
    if step < warmup:
        return (step + 1) / warmup
    return max(0.02, (1 - (step - warmup) / (total - warmup)) ** 2)


def build():
    model = RegressionNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    return model, optimizer, LambdaLR(optimizer, factor)


def session(path, data, last_epoch):
    model, optimizer, scheduler = build()
    first_epoch = 0
    if os.path.exists(path):
        checkpoint = torch.load(path)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        first_epoch = checkpoint["epoch"]
    x, y = data
    criterion = nn.MSELoss()
    for epoch in range(first_epoch, last_epoch):
        running = 0.0
        for _ in range(STEPS_PER_EPOCH):
            idx = torch.randint(len(x), (64,))
            loss = criterion(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            running += loss.item()
        lr = optimizer.param_groups[0]["lr"]
        print(f"epoch {epoch + 1:2d} lr {lr:.6f} loss {running / STEPS_PER_EPOCH:.5f}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(), "epoch": last_epoch}, path)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(4096, 8)
    y = torch.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        session(path, (x, y), last_epoch=9)
        print("continuing from", os.path.basename(path))
        session(path, (x, y), last_epoch=EPOCHS)


if __name__ == "__main__":
    main()
