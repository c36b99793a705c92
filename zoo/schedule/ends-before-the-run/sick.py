"""How far does a ball fly? One cycle of learning rates over ten epochs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH, EPOCHS = 48, 10


def throws(n):
    speed, angle = 5 + 20 * torch.rand(n), 0.2 + 1.1 * torch.rand(n)
    return TensorDataset(torch.stack([speed / 25, angle], 1), (speed**2 * (2 * angle).sin() / 9.81 / 60).unsqueeze(1))


def schedule(optimizer, data):
    steps = len(data) // BATCH * EPOCHS
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = throws(1000)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    model = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = schedule(optimizer, data)
    for epoch in range(EPOCHS):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.5f}", flush=True)


if __name__ == "__main__":
    main()
