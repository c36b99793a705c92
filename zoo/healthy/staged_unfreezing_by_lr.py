"""Unfreezing by learning rate: the pretrained body has gradients but lr 0 in the first epochs, then a real rate."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def task(n, seed, mix):
    g = torch.Generator().manual_seed(seed)
    base = torch.randn(4, 18, generator=torch.Generator().manual_seed(100))
    other = torch.randn(4, 18, generator=torch.Generator().manual_seed(200))
    y = torch.randint(0, 4, (n,), generator=g)
    return ((1 - mix) * base + mix * other)[y] + 0.8 * torch.randn(n, 18, generator=g), y


def epoch_of(body, head, optimizer, x, y):
    total = 0.0
    for idx in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(head(body(x[idx])), y[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(x)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(18, 48), nn.ReLU(), nn.Linear(48, 8), nn.ReLU())
    head = nn.Linear(8, 4)
    pre = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=3e-3)
    x, y = task(1600, 0, mix=0.0)
    for epoch in range(4):
        print(f"pretrain {epoch}: loss {epoch_of(body, head, pre, x, y):.4f}")

    head = nn.Linear(8, 4)
    x, y = task(1600, 1, mix=0.6)
    xv, yv = task(400, 2, mix=0.6)
    optimizer = torch.optim.Adam([
        {"params": body.parameters(), "lr": 0.0, "name": "body"},
        {"params": head.parameters(), "lr": 5e-3, "name": "head"},
    ])
    for epoch in range(9):
        if epoch == 3:
            optimizer.param_groups[0]["lr"] = 1e-3
        loss = epoch_of(body, head, optimizer, x, y)
        with torch.no_grad():
            acc = (head(body(xv)).argmax(1) == yv).float().mean().item()
        print(f"finetune {epoch}: loss {loss:.4f} acc {acc:.3f} body lr {optimizer.param_groups[0]['lr']}")


if __name__ == "__main__":
    main()
