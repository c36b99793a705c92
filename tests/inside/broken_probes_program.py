"""Forks once for each job on standard input and trains in the child, with the probes brought in and one of them broken.

A job is a line of JSON: {case, break, most_bytes}. Torch is imported once, in the parent; the probes arrive in the child. The
training touches every probe. The answer is {code, output} of the child.
"""

import io
import json
import os
import resource
import sys
import traceback

import torch
import torch._dynamo
import torch.utils.checkpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


class Silent(SummaryWriter):
    """A writer without a file."""

    def __init__(self):
        pass

    def add_scalar(self, tag, scalar_value, global_step=None):
        try:
            super().add_scalar(tag, scalar_value, global_step)
        except AttributeError:
            pass


def train():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Dropout(0.1), nn.Linear(6, 3))
    model[0].bias.requires_grad = False
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 40)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    criterion = nn.CrossEntropyLoss()
    data = TensorDataset(torch.randn(24, 5), torch.randint(0, 3, (24,)))
    writer = Silent()
    for _ in range(14):  # from the eleventh on the probes rest at its end
        for x, y in DataLoader(data, batch_size=8, shuffle=True):
            model.train()
            loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            schedule.step()
            writer.add_scalar("loss", loss.item(), 1)
            print(loss.item().hex())
        with torch.no_grad():
            model(x)
    print(torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().item().hex())
    stored = io.BytesIO()
    torch.save(model.state_dict(), stored)
    stored.seek(0)
    model.load_state_dict(torch.load(stored))
    double = torch.compile(lambda x: x * 2, backend="eager", fullgraph=True)
    print(double(model[3].weight.detach()).sum().item().hex(), torch.rand(()).item().hex())


def child(job):
    if job["break"] is not None:
        os.environ.update(TRAINSLEUTH_CASE=job["case"], TRAINSLEUTH_BREAK=job["break"])
        from _trainsleuth_inside import bootstrap

        if job.get("most_bytes"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (job["most_bytes"], job["most_bytes"]))
        bootstrap.begin()
    train()
    sys.stdout.flush()
    sys.exit(0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in sys.stdin:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(writing, 1)
            try:
                child(json.loads(line))
            except Exception:
                traceback.print_exc()
                sys.exit(70)
        os.close(writing)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with open(reading) as output:
            print(json.dumps({"code": code, "output": output.read()}), flush=True)
