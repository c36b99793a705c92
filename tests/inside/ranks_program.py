"""Two ranks train together; rank 0 prints its losses and the weights that both share."""

import atexit
import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(3)
model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
torch.manual_seed(100 + rank)
losses = []
for _ in range(10):
    loss = F.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 3, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item().hex())
weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
answers = [None, None]
dist.all_gather_object(answers, (losses, hashlib.sha256(weights).hexdigest()))
if rank == 0:
    print(answers, os.environ["WORLD_SIZE"])
dist.destroy_process_group()
sys.stdout.flush()
atexit._run_exitfuncs()
os._exit(0)  # on a busy machine torch 2.13 now and then aborts while its native threads are taken down after that, without us as well
