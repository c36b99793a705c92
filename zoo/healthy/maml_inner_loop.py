"""MAML on sine waves: inner-loop gradients by autograd.grad on fast weights, one outer step per meta-batch."""
import math

import torch
import torch.nn as nn
from torch.func import functional_call

N_TASKS, K_SHOT, INNER_LR, META_ITERS = 6, 10, 0.02, 250


class SineNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))

    def forward(self, x):
        return self.net(x)


class SineTask:
    def __init__(self):
        self.amplitude = torch.empty(1).uniform_(0.5, 2.0)
        self.phase = torch.empty(1).uniform_(0, math.pi / 2)

    def sample(self, k):
        x = torch.empty(k, 1).uniform_(-3, 3)
        return x, self.amplitude * torch.sin(x + self.phase)


def adapt(model, x, y, steps=1, create_graph=True):
    fast = dict(model.named_parameters())
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(model, fast, x), y)
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=create_graph)
        fast = {name: w - INNER_LR * g for (name, w), g in zip(fast.items(), grads)}
    return fast


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = SineNet()
    meta_opt = torch.optim.Adam(model.parameters(), lr=5e-3)

    for it in range(META_ITERS):
        meta_opt.zero_grad()
        meta_loss = 0.0
        for _ in range(N_TASKS):
            task = SineTask()
            fast = adapt(model, *task.sample(K_SHOT))
            x_q, y_q = task.sample(K_SHOT)
            query_loss = nn.functional.mse_loss(functional_call(model, fast, x_q), y_q)
            (query_loss / N_TASKS).backward()
            meta_loss += query_loss.item() / N_TASKS
        meta_opt.step()
        if it % 25 == 0 or it == META_ITERS - 1:
            print(f"meta-iter {it:4d}  query loss {meta_loss:.4f}")

    errors = []
    for _ in range(50):
        task = SineTask()
        fast = adapt(model, *task.sample(K_SHOT), steps=5, create_graph=False)
        with torch.no_grad():
            x, y = task.sample(100)
            errors.append(nn.functional.mse_loss(functional_call(model, fast, x), y).item())
    print(f"5-step adaptation on 50 new tasks: mse {sum(errors) / len(errors):.4f}")


if __name__ == "__main__":
    main()
