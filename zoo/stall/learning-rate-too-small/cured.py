"""Classifies hand movements from six sensor channels over time."""

import torch
from torch import nn

OPTIONS = {"rate": 3.0, "rate_unit": 1e-3, "batch": 40, "steps": 320, "width": 56}
MOVES, CHANNELS, TICKS = 6, 6, 20


class Moves(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.read = nn.GRU(CHANNELS, width, batch_first=True)
        self.tell = nn.Linear(width, MOVES)

    def forward(self, x):
        seen, _ = self.read(x)
        return self.tell(seen[:, -1])


def recorded(count, generator):
    patterns = torch.randn(MOVES, TICKS, CHANNELS, generator=torch.Generator().manual_seed(2))
    move = torch.randint(MOVES, (count,), generator=generator)
    return patterns[move] + 0.5 * torch.randn(count, TICKS, CHANNELS, generator=generator), move


class Course:
    def __init__(self, options):
        self.options = dict(options)
        self.options["rate"] *= self.options["rate_unit"]
        self.net = Moves(options["width"])
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=self.options["rate"])

    def go(self):
        generator = torch.Generator().manual_seed(13)
        for step in range(self.options["steps"]):
            x, move = recorded(self.options["batch"], generator)
            loss = nn.functional.cross_entropy(self.net(x), move)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 40 == 0 or step == self.options["steps"] - 1:
                print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    Course(OPTIONS).go()
