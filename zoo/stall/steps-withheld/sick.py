"""Which of five voices is speaking? Accelerate, with accumulation."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATION, EPOCHS = 4, 8


def voices(n):
    who = torch.randint(0, 5, (n,))
    time = torch.linspace(0, 1, 48)
    pitch = 2.0 + 1.5 * who.float()[:, None]
    return TensorDataset(torch.sin(6.283 * pitch * time + 6.283 * torch.rand(n, 1)) + 0.5 * torch.randn(n, 48), who)


def main():
    torch.set_num_threads(1)
    set_seed(3)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATION)
    net = nn.Sequential(nn.Unflatten(1, (1, 48)), nn.Conv1d(1, 16, 7, padding=3), nn.ReLU(), nn.AvgPool1d(4), nn.Conv1d(16, 32, 5), nn.ReLU(),
                        nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(32, 5))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    loader = DataLoader(voices(640), batch_size=8, shuffle=True)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    for epoch in range(EPOCHS):
        total = 0.0
        for number, (x, who) in enumerate(loader):
            with accelerator.accumulate(net):
                loss = F.cross_entropy(net(x), who)
                accelerator.backward(loss)
                total += loss.item()
                if number % ACCUMULATION == 0:
                    optimizer.step()
                    optimizer.zero_grad()
        accelerator.print(f"epoch {epoch} loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
