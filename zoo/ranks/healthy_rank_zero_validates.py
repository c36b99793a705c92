"""Rank 0 alone validates at length, logs and saves between two barriers; the other rank waits for three seconds each time."""

import json
import os
import socket
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


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


def spirals(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    r = torch.rand(n, generator=g)
    a = 4 * r + y * 2.094 + 0.15 * torch.randn(n, generator=g)
    return TensorDataset(torch.stack([r * a.cos(), r * a.sin()], 1), y)


def full_validation(net, data, seconds=3.0):
    """Accuracy under many small perturbations of the input, for as long as the budget lasts."""
    x, y = data.tensors
    votes = torch.zeros(len(x), 3)
    begin = time.monotonic()
    net.eval()
    with torch.no_grad():
        while time.monotonic() - begin < seconds:
            votes += net(x + 0.02 * torch.randn_like(x)).softmax(1)
            time.sleep(0.02)
    net.train()
    return (votes.argmax(1) == y).float().mean().item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data, held_out = spirals(1800, seed=0), spirals(600, seed=1)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=30, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    folder = os.path.join(tempfile.gettempdir(), f"spirals-{os.environ['MASTER_PORT']}")

    for epoch in range(6):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()

        if epoch % 2 == 1:
            dist.barrier()
            if rank == 0:
                os.makedirs(folder, exist_ok=True)
                acc = full_validation(model.module, held_out)
                torch.save(model.module.state_dict(), os.path.join(folder, "last.pt"))
                with open(os.path.join(folder, "log.jsonl"), "a") as log:
                    log.write(json.dumps({"epoch": epoch, "loss": loss.item(), "accuracy": acc}) + "\n")
                print(f"epoch {epoch} loss {loss.item():.4f} accuracy {acc:.3f}", flush=True)
            dist.barrier()

    if rank == 0:
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        os.rmdir(folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
