"""Mean teacher, semi-supervised: the teacher never gets a gradient and follows the student by EMA."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def two_moons(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.rand(n, generator=g) * math.pi
    y = torch.randint(0, 2, (n,), generator=g)
    x = torch.stack([torch.cos(t), torch.sin(t)], 1)
    x[y == 1] = torch.stack([1 - torch.cos(t[y == 1]), 0.5 - torch.sin(t[y == 1])], 1)
    return x + 0.1 * torch.randn(n, 2, generator=g), y


def build():
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


@torch.no_grad()
def update_ema(student, teacher, alpha, global_step):
    alpha = min(1 - 1 / (global_step + 1), alpha)
    for ema_param, param in zip(teacher.parameters(), student.parameters()):
        ema_param.mul_(alpha).add_(param, alpha=1 - alpha)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(10)
    xl, yl = two_moons(60, 1)
    xu, _ = two_moons(2000, 2)
    xt, yt = two_moons(1000, 3)

    student = build()
    teacher = copy.deepcopy(student)
    for p in teacher.parameters():
        p.detach_()
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)

    student.train()
    teacher.train()
    for step in range(1, 701):
        u = xu[torch.randint(len(xu), (64,))]
        noisy = lambda t: t + 0.08 * torch.randn_like(t)
        class_loss = F.cross_entropy(student(noisy(xl)), yl)
        with torch.no_grad():
            target = teacher(noisy(u)).softmax(1)
        consistency = F.mse_loss(student(noisy(u)).softmax(1), target)
        weight = 3.0 * math.exp(-5 * (1 - min(1.0, step / 400)) ** 2)
        loss = class_loss + weight * consistency

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_ema(student, teacher, 0.99, step)

        if step % 100 == 0 or step == 1:
            teacher.eval()
            with torch.no_grad():
                acc = (teacher(xt).argmax(1) == yt).float().mean()
            teacher.train()
            print(f"step {step:5d}  loss {loss:.4f}  class {class_loss:.4f}  cons {consistency:.5f}  "
                  f"teacher acc {acc:.3f}")


if __name__ == "__main__":
    main()
