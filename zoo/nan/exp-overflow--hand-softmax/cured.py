"""Pointer network that picks the largest of several parcels; trained with Accelerate."""
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pointer(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(3, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.query = nn.Linear(dim, dim)

    def forward(self, parcels):
        h = self.embed(parcels)
        scores = torch.einsum("bd,bnd->bn", self.query(h.mean(1)), h)
        e = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
        return e / e.sum(dim=1, keepdim=True)


def main():
    torch.set_num_threads(1)
    set_seed(0)
    sizes = torch.rand(1600, 6, 3) * 2
    largest = sizes.prod(-1).argmax(1)
    accelerator = Accelerator(cpu=True)
    model = Pointer()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(sizes, largest), batch_size=32, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(6):
        total = 0.0
        for parcels, target in loader:
            probs = model(parcels)
            loss = -torch.log(probs.gather(1, target[:, None]) + 1e-8).mean()
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
        accelerator.print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
