"""Compresses sensor readings into a small random code and reads them back."""
import torch
from torch import nn
from torch.distributions import Independent, Normal, kl_divergence


class Codec(nn.Module):
    def __init__(self, width=20, code=3):
        super().__init__()
        self.code = code
        self.inward = nn.Sequential(nn.Linear(width, 48), nn.Tanh(), nn.Linear(48, 2 * code))
        self.outward = nn.Sequential(nn.Linear(code, 48), nn.Tanh(), nn.Linear(48, width))

    def forward(self, x):
        mean, spread = self.inward(x).chunk(2, -1)
        posterior = Independent(Normal(mean, nn.functional.softplus(spread) + 1e-3), 1)
        prior = Independent(Normal(torch.zeros_like(mean), torch.ones_like(mean)), 1)
        return self.outward(posterior.sample()), kl_divergence(posterior, prior)


torch.manual_seed(6)
torch.set_num_threads(1)
shape = torch.randn(3, 20)
codec = Codec()
optimizer = torch.optim.Adam(codec.parameters(), lr=3e-3)
for step in range(400):
    x = torch.tanh(torch.randn(64, 3) @ shape)
    back, distance = codec(x)
    loss = (back - x).pow(2).sum(-1).mean() + 0.1 * distance.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 80 == 0:
        print(f"step {step}: {loss.item():.3f}")
