"""A scheduler on the same machine suspends the job for a while and lets it go on."""

import os
import subprocess
import time

import torch
import torch.nn as nn


def suspend_for(seconds):
    me = os.getpid()
    return subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -STOP {me}; sleep {seconds}; kill -CONT {me}"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    scheduler, slowest = None, 0.0
    for step in range(1, 121):
        began = time.monotonic()
        x = torch.randn(32, 10, 4)
        loss = nn.functional.mse_loss(net(x), x[:, :, 0].mean(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 30:
            scheduler = suspend_for(9)
        time.sleep(0.01)
        slowest = max(slowest, time.monotonic() - began)
        if step % 30 == 0:
            print(f"step {step}: loss {loss.item():.4f}, slowest step so far {slowest:.1f} s", flush=True)
    scheduler.wait()


if __name__ == "__main__":
    main()
