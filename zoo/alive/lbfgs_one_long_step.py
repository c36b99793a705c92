"""L-BFGS with a large number of inner iterations: a single optimizer step takes ten seconds."""

import time

import torch
import torch.nn as nn


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.rand(400, 2) * 2 - 1
    y = (3 * x[:, :1]).sin() * (2 * x[:, 1:]).cos()
    model = nn.Sequential(nn.Linear(2, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))

    def mse():
        return nn.functional.mse_loss(model(x), y)

    first = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(40):
        first.zero_grad()
        loss = mse()
        loss.backward()
        first.step()
    print(f"Adam: {loss.item():.5f}", flush=True)

    second = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=100000, tolerance_grad=0, tolerance_change=0)
    until = time.monotonic() + 10
    evaluations = 0

    class TimeIsUp(Exception):
        pass

    def closure():
        nonlocal evaluations
        if time.monotonic() > until:
            raise TimeIsUp
        evaluations += 1
        second.zero_grad()
        loss = mse()
        loss.backward()
        return loss

    try:
        second.step(closure)
    except TimeIsUp:
        pass
    print(f"L-BFGS: {mse().item():.7f} after {evaluations} evaluations", flush=True)
    third = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(10):
        third.zero_grad()
        loss = mse()
        loss.backward()
        third.step()
    print(f"SGD: {loss.item():.7f}", flush=True)


if __name__ == "__main__":
    main()
