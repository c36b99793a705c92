"""PCGrad: gradients of two conflicting tasks are projected and written into .grad by hand."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class PCGrad:
    def __init__(self, optimizer):
        self.optim = optimizer

    def zero_grad(self):
        self.optim.zero_grad(set_to_none=True)

    def step(self):
        self.optim.step()

    def pc_backward(self, objectives):
        params = [p for g in self.optim.param_groups for p in g["params"]]
        flat = []
        for objective in objectives:
            self.zero_grad()
            objective.backward(retain_graph=True)
            flat.append(torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in params]))
        projected = [g.clone() for g in flat]
        for g_i in projected:
            for g_j in random.sample(flat, len(flat)):
                dot = torch.dot(g_i, g_j)
                if dot < 0:
                    g_i -= dot / g_j.norm() ** 2 * g_j
        merged, offset = torch.stack(projected).sum(0), 0
        for p in params:
            p.grad = merged[offset:offset + p.numel()].view_as(p).clone()
            offset += p.numel()


class MultiTaskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.head_a = nn.Linear(32, 3)
        self.head_b = nn.Linear(32, 1)

    def forward(self, x):
        h = self.shared(x)
        return self.head_a(h), self.head_b(h).squeeze(1)


def main():
    torch.set_num_threads(1)
    random.seed(2)
    torch.manual_seed(2)
    w = torch.randn(12, 3)
    x = torch.randn(3000, 12)
    label, value = (x @ w).argmax(1), torch.sin(x[:, 0]) - 0.5 * x[:, 3] + x[:, 4] * x[:, 5].abs()

    net = MultiTaskNet()
    optimizer = PCGrad(torch.optim.Adam(net.parameters(), lr=3e-3))
    for step in range(600):
        idx = torch.randint(0, 2500, (64,))
        logits, pred = net(x[idx])
        loss_a, loss_b = F.cross_entropy(logits, label[idx]), F.mse_loss(pred, value[idx])
        optimizer.zero_grad()
        optimizer.pc_backward([loss_a, loss_b])
        optimizer.step()
        if step % 60 == 0 or step == 599:
            a, b = loss_a.item(), loss_b.item()
            print(f"step {step}: total loss = {a + b:.4f} (a {a:.4f}, b {b:.4f})")

    with torch.no_grad():
        logits, pred = net(x[2500:])
    print(f"held out: accuracy {(logits.argmax(1) == label[2500:]).float().mean():.3f}, "
          f"mse {F.mse_loss(pred, value[2500:]):.3f}")


if __name__ == "__main__":
    main()
