"""Set classifier that drops random tokens in its block; Trainer class, checkpointing."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class DropTokens(nn.Module):
    def __init__(self, dim, drop=0.3):
        super().__init__()
        self.drop = drop
        self.attend = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        keep = np.flatnonzero(np.random.rand(x.shape[1]) > self.drop)
        kept = x[:, torch.as_tensor(keep)]
        return x + self.attend(self.norm(x), kept, kept)[0]


class SetNet(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Linear(3, dim)
        self.block = DropTokens(dim)
        self.head = nn.Linear(dim, 4)

    def forward(self, x):
        x = self.embed(x)
        x = checkpoint(self.block, x, use_reentrant=False)
        return self.head(x.mean(1))


class Trainer:
    def __init__(self):
        self.model = SetNet()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=4e-3)

    def step(self):
        y = torch.randint(0, 4, (32,))
        x = torch.randn(32, 12, 3) + torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])[y][:, None]
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


if __name__ == "__main__":
    np.random.seed(3)
    torch.manual_seed(3)
    torch.set_num_threads(1)
    trainer = Trainer()
    for i in range(120):
        value = trainer.step()
        if i % 20 == 0:
            print(f"{i:3d}: {value:.4f}")
