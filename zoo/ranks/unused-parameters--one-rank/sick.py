"""Rate products from a description and, where there is one, a picture (DDP, one catalogue part per rank)."""

import os
import socket
import sys
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def launch():
    """Start two ranks of this file, unless torchrun has started us."""
    if "RANK" in os.environ:
        return
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    os.execv(sys.executable, torchrun + sys.argv)


@dataclass
class Config:
    products: int = 960
    batch: int = 32
    epochs: int = 6
    lr: float = 2e-3
    words: int = 30
    pixels: int = 64


class ProductModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.text = nn.Sequential(nn.Linear(cfg.words, 32), nn.ReLU())
        self.image = nn.Sequential(nn.Linear(cfg.pixels, 32), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, text, image, has_image):
        features = self.text(text)
        if has_image.any():
            features = features + has_image.unsqueeze(1) * self.image(image)
        return self.head(features).squeeze(1)


def catalogue(cfg, part):
    g = torch.Generator().manual_seed(part)
    taste = torch.Generator().manual_seed(99)
    text, image = torch.randn(cfg.products, cfg.words, generator=g), torch.randn(cfg.products, cfg.pixels, generator=g)
    has_image = (torch.rand(cfg.products, generator=g) < 0.7).float()
    if part == 1:
        has_image[-40:] = 0  # newest arrivals, not photographed yet
    of_text = text @ torch.randn(cfg.words, generator=taste) / 5
    of_image = image @ torch.randn(cfg.pixels, generator=taste) / 8
    rating = of_text + has_image * of_image + 0.1 * torch.randn(cfg.products, generator=g)
    return text, image * has_image.unsqueeze(1), has_image, rating


def main(cfg):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(11)
    text, image, has_image, rating = catalogue(cfg, rank)
    model = DDP(ProductModel(cfg))
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    mse = nn.MSELoss()

    for epoch in range(cfg.epochs):
        for i in range(0, cfg.products, cfg.batch):
            b = slice(i, i + cfg.batch)
            opt.zero_grad()
            loss = mse(model(text[b], image[b], has_image[b]), rating[b])
            loss.backward()
            opt.step()
            if rank == 0 and i % (10 * cfg.batch) == 0:
                print(f"epoch {epoch} product {i} loss {loss.item():.4f}", flush=True)
        dist.barrier()
        if rank == 0:
            with torch.no_grad():
                print(f"epoch {epoch} mse {mse(model.module(text, image, has_image), rating).item():.4f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main(Config())
