"""RNN on the adding problem: raw gradient norms far above the clip value are logged in most steps, training is fine."""
import csv
import tempfile
from pathlib import Path

import torch
import torch.nn as nn


class Adder(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


def adding_problem(n, length=12):
    values = torch.rand(n, length)
    marks = torch.zeros(n, length)
    first = torch.randint(0, length // 2, (n,))
    second = torch.randint(length // 2, length, (n,))
    rows = torch.arange(n)
    marks[rows, first] = marks[rows, second] = 1
    return torch.stack([values, marks], -1), (values * marks).sum(1, keepdim=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    model = Adder()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    with tempfile.TemporaryDirectory() as folder:
        with open(Path(folder) / "log.csv", "w", newline="") as f:
            log = csv.writer(f)
            log.writerow(["step", "loss", "grad_norm"])
            clipped = 0
            for step in range(400):
                x, y = adding_problem(48)
                loss = nn.functional.mse_loss(model(x), y)
                opt.zero_grad()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1)
                opt.step()
                clipped += norm.item() > 0.1
                log.writerow([step, loss.item(), norm.item()])
                if step % 50 == 0 or step == 399:
                    print(f"step {step:4d} | loss {loss.item():.5f} | grad norm {norm.item():.3f} | clipped {clipped}")


if __name__ == "__main__":
    main()
