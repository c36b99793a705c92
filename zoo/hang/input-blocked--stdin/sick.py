import os
import pty

import torch
import torch.nn as nn
import torch.nn.functional as F

terminal, line = pty.openpty()
os.dup2(line, 0)

ASK_AFTER = 25


def spirals(n):
    label = torch.randint(0, 3, (n,))
    r = torch.rand(n)
    angle = 4 * r + label * 2.094 + 0.1 * torch.randn(n)
    return torch.stack([r * angle.cos(), r * angle.sin()], dim=1), label


def go_on(step, accuracy):
    answer = input(f"accuracy {accuracy:.2f} after {step} steps, train on? [Y/n] ")
    return answer.strip().lower() in ("", "y", "yes")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
    x_val, y_val = spirals(500)
    for step in range(1, 61):
        x, y = spirals(128)
        loss = F.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        if step % ASK_AFTER == 0:
            with torch.no_grad():
                accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
            if not go_on(step, accuracy):
                break
    print(f"stopped at step {step}, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
