"""Weights, gradients and optimizer state in bfloat16; the learning rate is large enough to move them, norm layers too."""
import torch
import torch.nn as nn


class Mixer(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.inner = nn.Linear(10, width)
        self.norm = nn.LayerNorm(width)
        self.outer = nn.Linear(width, 4)

    def forward(self, x):
        return self.outer(torch.relu(self.norm(self.inner(x))))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(7)
    centres = torch.randn(4, 10)
    model = Mixer().to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for step in range(200):
        y = torch.randint(0, 4, (64,))
        x = (centres[y] + torch.randn(64, 10)).to(torch.bfloat16)
        loss = nn.functional.cross_entropy(model(x).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}  norm weight {model.norm.weight.float().mean():.3f}")


if __name__ == "__main__":
    main()
