"""Energy of point clusters with an equivariant graph network, as a LightningModule."""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
ATOMS = 5


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * dim + 1, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.shift = nn.Linear(dim, 1)

    def forward(self, h, pos, src, dst):
        length = (((pos[src] - pos[dst]) ** 2).sum(-1) + 1e-10).sqrt()
        m = self.message(torch.cat([h[src], h[dst], length.unsqueeze(-1)], dim=-1))
        pos = pos.index_add(0, dst, 0.05 * torch.tanh(self.shift(m)) * (pos[src] - pos[dst]))
        return h.index_add(0, dst, m / ATOMS), pos


class Energy(L.LightningModule):
    def __init__(self, dim=24):
        super().__init__()
        self.start = nn.Parameter(torch.randn(dim))
        self.layers = nn.ModuleList(Layer(dim) for _ in range(2))
        self.head = nn.Linear(dim, 1)

    def forward(self, clusters):
        size = len(clusters)
        base = torch.arange(size).repeat_interleave(ATOMS * ATOMS) * ATOMS
        src = base + torch.arange(ATOMS).repeat_interleave(ATOMS).repeat(size)
        dst = base + torch.arange(ATOMS).repeat(ATOMS * size)
        h, pos = self.start.expand(size * ATOMS, -1), clusters.reshape(-1, 3)
        for layer in self.layers:
            h, pos = layer(h, pos, src, dst)
        return self.head(h).view(size, ATOMS).sum(1)

    def training_step(self, batch, index):
        clusters, energy = batch
        loss = nn.functional.mse_loss(self(clusters), energy)
        if index % 10 == 0:
            print(f"epoch {self.current_epoch} batch {index} loss {loss.item():.4f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main():
    torch.set_num_threads(1)
    L.seed_everything(5, verbose=False)
    clusters = torch.randn(640, ATOMS, 3)
    pair = torch.cdist(clusters, clusters)
    energy = torch.exp(-pair).sum((1, 2)) - ATOMS
    loader = DataLoader(TensorDataset(clusters, energy), batch_size=32, shuffle=True)
    trainer = L.Trainer(accelerator="cpu", max_epochs=4, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Energy(), loader)


if __name__ == "__main__":
    main()
