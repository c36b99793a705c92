"""Both forms of checkpointing around blocks with dropout: the RNG state is kept, so the recomputation draws the same masks."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Mlp(nn.Module):
    def __init__(self, width, drop=0.1):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(drop), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.net(x)


class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Linear(10, width)
        self.first, self.second = Mlp(width), Mlp(width)
        self.rest = nn.Sequential(Mlp(width), Mlp(width))
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        x = self.stem(x)
        x = checkpoint(self.first, x, use_reentrant=False)
        x = checkpoint(self.second, x, use_reentrant=True, preserve_rng_state=True)
        return self.head(checkpoint_sequential(self.rest, 2, x, use_reentrant=False))


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    w = torch.randn(10, 4)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(120):
        x = torch.randn(48, 10)
        loss = nn.functional.cross_entropy(model(x), (x @ w).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{step:3d}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
