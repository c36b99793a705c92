"""A model in half precision with a copy of its weights in 32 bit for the optimizer, and a loss scaled by hand."""
import copy

import torch
import torch.nn as nn

SCALE = 1024.0


def main():
    torch.set_num_threads(1)
    torch.manual_seed(9)
    master = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 3))
    model = copy.deepcopy(master).half()
    optimizer = torch.optim.Adam(master.parameters(), lr=2e-3)
    mixing = torch.randn(12, 3)
    for step in range(250):
        x = torch.randn(64, 12)
        y = (x @ mixing).argmax(1)
        loss = nn.functional.cross_entropy(model(x.half()).float(), y)
        (loss * SCALE).backward()
        for weight, copied in zip(master.parameters(), model.parameters()):
            weight.grad = copied.grad.float() / SCALE
            copied.grad = None
        optimizer.step()
        with torch.no_grad():
            for weight, copied in zip(master.parameters(), model.parameters()):
                copied.copy_(weight)
        if step % 50 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
