"""Link prediction on a small graph with a cached encoding."""
import torch
from torch import nn


class LinkModel(nn.Module):
    def __init__(self, features, adjacency, dim=16):
        super().__init__()
        self.register_buffer("features", features)
        self.register_buffer("adjacency", adjacency)
        self.encode = nn.Sequential(nn.Linear(features.shape[1], 32), nn.ReLU(), nn.Linear(32, dim))
        self.encoded = None

    def nodes(self):
        if self.encoded is None:
            self.encoded = self.encode(self.adjacency @ self.features)
        return self.encoded

    def forward(self, src, dst):
        h = self.nodes()
        return (h[src] * h[dst]).sum(-1)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    group = torch.arange(60) // 15
    features = nn.functional.one_hot(group, 4).float() + 0.5 * torch.randn(60, 4)
    adjacency = torch.eye(60)
    model = LinkModel(features, adjacency)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(120):
        src, dst = torch.randint(0, 60, (2, 64))
        linked = (group[src] == group[dst]).float()
        score = model(src, dst)
        loss = nn.functional.binary_cross_entropy_with_logits(score, linked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
