"""DistributedDataParallel on two gloo ranks started by mp.spawn, with a DistributedSampler that gets set_epoch."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_dataset():
    g = torch.Generator().manual_seed(0)
    centers = 0.7 * torch.randn(5, 16, generator=g)
    y = torch.randint(0, 5, (2000,), generator=g)
    return TensorDataset(centers[y] + torch.randn(2000, 16, generator=g), y)


def worker(rank, world_size, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    dataset = make_dataset()
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank)
    loader = DataLoader(dataset, batch_size=50, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 5)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(5):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} loss {total.item() / len(loader) / world_size:.4f}", flush=True)
    dist.destroy_process_group()


def main():
    mp.spawn(worker, args=(2, free_port()), nprocs=2)


if __name__ == "__main__":
    main()
