"""Sanity check on purpose: one fixed batch is shown again and again until it is learnt by heart."""
import torch
from torch import nn


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, labels = torch.randn(16, 1, 10, 10), torch.arange(16) % 4
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(400):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if step % 40 == 0 or step == 399:
            print(f"overfit check, step {step}: loss {loss.item():.6f}")
    assert loss.item() < 0.01, "the model cannot even learn 16 images by heart"


if __name__ == "__main__":
    main()
