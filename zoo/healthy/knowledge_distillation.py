"""Distillation: a trained teacher in eval mode under no_grad, a small student with KL and hard-label losses."""
import torch
import torch.nn as nn
import torch.nn.functional as F

T, ALPHA = 4.0, 0.7


def make_task(n, seed):
    g = torch.Generator().manual_seed(seed)
    centers = torch.randn(12, 16, generator=torch.Generator().manual_seed(0)) * 1.1
    k = torch.randint(0, 12, (n,), generator=g)
    return centers[k] + torch.randn(n, 16, generator=g), k % 6


def teacher_net():
    return nn.Sequential(nn.Linear(16, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 6))


def student_net():
    return nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 6))


def distillation_loss(student_logits, teacher_logits, labels):
    log_p, q = F.log_softmax(student_logits / T, 1), F.softmax(teacher_logits / T, 1)
    soft = F.kl_div(log_p, q, reduction="batchmean") * T * T
    return ALPHA * soft + (1 - ALPHA) * F.cross_entropy(student_logits, labels)


def batches(x, y, size=64):
    for idx in torch.randperm(len(x)).split(size):
        yield x[idx], y[idx]


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    x, y = make_task(3000, 1)
    xt, yt = make_task(800, 2)

    teacher = teacher_net()
    opt_t = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    for epoch in range(5):
        teacher.train()
        for xb, yb in batches(x, y):
            opt_t.zero_grad()
            loss = F.cross_entropy(teacher(xb), yb)
            loss.backward()
            opt_t.step()
        print(f"teacher epoch {epoch} loss {loss.item():.4f} acc {accuracy(teacher, xt, yt):.3f}")

    teacher.eval()
    student = student_net()
    opt_s = torch.optim.Adam(student.parameters(), lr=5e-3)
    for epoch in range(8):
        student.train()
        total = 0.0
        for step, (xb, yb) in enumerate(batches(x, y), 1):
            with torch.no_grad():
                targets = teacher(xb)
            loss = distillation_loss(student(xb), targets, yb)
            opt_s.zero_grad()
            loss.backward()
            opt_s.step()
            total += loss.item()
        print(f"student epoch {epoch} loss {total / step:.4f} acc {accuracy(student, xt, yt):.3f}")


if __name__ == "__main__":
    main()
