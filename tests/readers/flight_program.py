"""Two gloo ranks that write their flight recorder dumps, as pickle, with lines; the second word says what rank 1 does otherwise."""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing

FOLDER, HOW = sys.argv[1], sys.argv[2]


def train(rank: int) -> None:
    for _ in range(3):
        dist.all_reduce(torch.ones(4))
    if HOW == "equal":
        return
    if rank == 0:
        dist.broadcast(torch.ones(2), 0, async_op=True)  # rank 0 goes on alone
    elif HOW == "mismatch":
        dist.all_reduce(torch.ones(8), async_op=True)  # rank 1 calls another


def work(rank: int) -> None:
    store = dist.FileStore(str(Path(FOLDER, "store")), 2)
    dist.init_process_group("gloo", rank=rank, world_size=2, store=store)
    train(rank)
    Path(FOLDER, f"nccl_trace_rank_{rank}").write_bytes(torch._C._distributed_c10d._dump_fr_trace(True, True, False))
    Path(FOLDER).with_name(f"end {rank}").touch()
    while not Path(FOLDER).with_name(f"end {1 - rank}").exists():  # neither goes before the other has written
        time.sleep(0.02)
    os._exit(0)


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, nprocs=2)
