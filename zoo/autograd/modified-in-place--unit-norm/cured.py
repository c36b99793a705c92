"""Contrastive pretraining on two noisy views, with Accelerate."""
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        z = self.net(x)
        return z / z.norm(dim=1, keepdim=True).clamp(min=1e-6)


def main():
    torch.set_num_threads(1)
    set_seed(1)
    accelerator = Accelerator(cpu=True)
    model = Projector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(torch.randn(1280, 20)), batch_size=64, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(4):
        total = 0.0
        for x, in loader:
            a, b = model(x + 0.2 * torch.randn_like(x)), model(x + 0.2 * torch.randn_like(x))
            loss = nn.functional.cross_entropy(a @ b.t() / 0.1, torch.arange(len(x)))
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
        accelerator.print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
