import os
import tempfile

import torch
import torch.nn as nn
import torch.optim as optim

cfg = {"features": 30, "hidden": 48, "classes": 6, "lr": 2e-3, "batch": 64, "steps": 200}


def build():
    return nn.Sequential(
        nn.Linear(cfg["features"], cfg["hidden"]),
        nn.LayerNorm(cfg["hidden"]),
        nn.SiLU(),
        nn.Linear(cfg["hidden"], cfg["hidden"]),
        nn.SiLU(),
        nn.Linear(cfg["hidden"], cfg["classes"]),
    )


def shared_init(path):
    """All members of an ensemble start from the same weights."""
    torch.manual_seed(1234)
    torch.save(build().state_dict(), path)


def sample(centres, n):
    y = torch.randint(0, cfg["classes"], (n,))
    x = centres[y] * torch.randn(n, 1).sign() + 0.7 * torch.randn(n, cfg["features"])
    return x, y


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "init.pt")
        shared_init(path)

        net = build()
        opt = optim.Adam(net.parameters(), lr=cfg["lr"])
        net.load_state_dict(torch.load(path), assign=True)

    torch.manual_seed(0)
    centres = torch.randn(cfg["classes"], cfg["features"])
    loss_fn = nn.CrossEntropyLoss()
    for it in range(cfg["steps"]):
        x, y = sample(centres, cfg["batch"])
        loss = loss_fn(net(x), y)
        net.zero_grad()
        loss.backward()
        opt.step()
        if it % 20 == 0 or it == cfg["steps"] - 1:
            print("iter", it, "loss", round(loss.item(), 4))

    x, y = sample(centres, 1000)
    with torch.no_grad():
        print("accuracy", round((net(x).argmax(1) == y).float().mean().item(), 3))


if __name__ == "__main__":
    main()
