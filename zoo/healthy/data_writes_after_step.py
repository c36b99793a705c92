"""Weights are changed through .data and a reused numpy buffer is refilled, both after the backward: no graph needs them any more."""
import numpy as np
import torch
from torch import nn


def project(model, limit=1.0):
    for layer in model:
        if isinstance(layer, nn.Linear):
            norms = layer.weight.data.norm(dim=1, keepdim=True)
            layer.weight.data.mul_((limit / norms).clamp(max=1.0))
            layer.bias.data.clamp_(-1, 1)


def main():
    rng = np.random.default_rng(17)
    torch.manual_seed(17)
    torch.set_num_threads(1)
    buffer = np.empty((40, 10), dtype=np.float32)
    shared = torch.from_numpy(buffer)
    mix = torch.randn(10, 3)
    model = nn.Sequential(nn.Linear(10, 40), nn.Tanh(), nn.Linear(40, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, fused=True)
    for step in range(180):
        buffer[:] = rng.standard_normal(buffer.shape)
        loss = nn.functional.cross_entropy(5 * model(shared), (shared @ mix).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        project(model)
        if step % 30 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
