"""Reads sensor frames into one reused buffer and prefetches the next frame while training."""
import numpy as np
import torch
from torch import nn

FRAMES, SENSORS = 32, 12


class Source:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.mix = self.rng.standard_normal((SENSORS, 1)).astype(np.float32)

    def fill(self, buffer):
        buffer[:] = self.rng.standard_normal(buffer.shape)

    def target(self, buffer):
        return torch.from_numpy(np.tanh(buffer @ self.mix))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    source = Source(4)
    buffer = np.zeros((FRAMES, SENSORS), dtype=np.float32)
    frames = torch.from_numpy(buffer)
    model = nn.Sequential(nn.Linear(SENSORS, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    source.fill(buffer)
    for step in range(200):
        target = source.target(buffer)
        loss = nn.functional.mse_loss(model(frames), target)
        source.fill(buffer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
