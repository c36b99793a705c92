"""Cosine annealing with warm restarts: after a restart the loss jumps up threefold, then falls below the old level."""
import torch
from torch import nn, optim

torch.set_num_threads(1)
torch.manual_seed(0)


def main():
    iters, batch = 700, 32
    x = torch.rand(4000, 3) * 4 - 2
    y = torch.sin(2 * x[:, :1]) * torch.cos(x[:, 1:2]) + 0.3 * x[:, 2:] ** 2
    net = nn.Sequential(nn.Linear(3, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 1))
    opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    sched = optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=100, T_mult=2, eta_min=1e-4)
    smooth = None
    for i in range(iters):
        idx = torch.randint(0, 3500, (batch,))
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x[idx]), y[idx])
        loss.backward()
        opt.step()
        sched.step()
        smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
        if i % 25 == 0 or i == iters - 1:
            print("iter {:4d}  lr {:.4f}  loss {:.5f}".format(i, sched.get_last_lr()[0], smooth))
    with torch.no_grad():
        print("held-out mse {:.5f}".format(nn.functional.mse_loss(net(x[3500:]), y[3500:]).item()))


if __name__ == "__main__":
    main()
