"""Two processes that each log the same metric; the second word says whether to one folder or each to its own."""

import sys

import torch.multiprocessing
from torch.utils.tensorboard import SummaryWriter


def rank(number: int, folder: str, shared: bool, meet) -> None:
    writer = SummaryWriter(folder if shared else f"{folder}/{number}")
    for step in range(8):
        meet.wait()
        writer.add_scalar("loss", 1 / (1 + step), step)
    writer.close()


if __name__ == "__main__":
    meeting = torch.multiprocessing.get_context("spawn").Barrier(2)
    torch.multiprocessing.spawn(rank, (sys.argv[1], sys.argv[2] == "shared", meeting), nprocs=2)
