"""The labels come from an external simulator that computes for ten seconds."""

import json
import subprocess
import sys

import torch
import torch.nn as nn

SIMULATOR = """
import json, random, sys, time
n, seconds = int(sys.argv[1]), float(sys.argv[2])
rng, until = random.Random(7), time.monotonic() + seconds
starts = [rng.uniform(0.1, 0.9) for _ in range(n)]
states, rounds = list(starts), 0
while time.monotonic() < until:
    rounds += 1
    states = [3.2 * s * (1 - s) for s in states]
print(json.dumps([starts, states, rounds]))
"""


def simulate(n, seconds):
    done = subprocess.run([sys.executable, "-c", SIMULATOR, str(n), str(seconds)], capture_output=True, text=True, check=True)
    starts, states, rounds = json.loads(done.stdout)
    print(f"simulated {n} populations for {rounds} rounds", flush=True)
    return torch.tensor(starts)[:, None], torch.tensor(states)[:, None]


def fit(net, optimizer, x, y, steps=40):
    for _ in range(steps):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.5f}", flush=True)


torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
fit(net, optimizer, *simulate(100, 0.2))
fit(net, optimizer, *simulate(400, 10))
