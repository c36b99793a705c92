"""A frozen tower in half precision, whose features feed a small head that is trained in 32 bit."""
import torch
import torch.nn as nn


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 128), nn.Tanh(), nn.Linear(128, 64), nn.Tanh())

    @torch.no_grad()
    def forward(self, x):
        return self.layers(x.half()).float()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(11)
    tower = Tower().half().eval().requires_grad_(False)
    head = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 5))
    optimizer = torch.optim.AdamW(head.parameters(), lr=5e-3)
    centres = torch.randn(5, 20)
    for step in range(200):
        y = torch.randint(0, 5, (50,))
        loss = nn.functional.cross_entropy(head(tower(centres[y] + 0.7 * torch.randn(50, 20))), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
