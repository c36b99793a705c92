"""Mixture of four experts with a router whose temperature is annealed; dropout, shuffling, entropy bonus."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Mixture(nn.Module):
    def __init__(self, n_in=10, width=32, experts=4, classes=5):
        super().__init__()
        self.router = nn.Linear(n_in, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, classes)) for _ in range(experts)
        )
        self.temperature = 1.0

    def forward(self, x):
        probs = F.softmax(self.router(x) / self.temperature, dim=-1)
        answers = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (probs.unsqueeze(-1) * answers).sum(dim=1), probs


def entropy(probs):
    return -(probs * probs.log()).sum(dim=-1).mean()


class Run:
    def __init__(self, seed=1):
        torch.manual_seed(seed)
        x = torch.randn(1600, 10)
        region = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
        y = (torch.einsum("nd,ndc->nc", x, torch.randn(4, 10, 5)[region])).argmax(-1)
        self.loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
        self.model = Mixture()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-3)
        self.step = 0

    def epoch(self, number):
        self.model.train()
        for x, y in self.loader:
            self.step += 1
            self.model.temperature = max(0.97 ** (self.step / 4), 0.01)
            logits, probs = self.model(x)
            loss = F.cross_entropy(logits, y) - 0.02 * entropy(probs)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        accuracy = (logits.argmax(-1) == y).float().mean()
        print(f"epoch {number} step {self.step} T {self.model.temperature:.3f} loss {loss.item():.4f} acc {accuracy:.2f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    run = Run()
    for number in range(10):
        run.epoch(number)
