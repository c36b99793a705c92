"""Click prediction from three groups of features, one branch for each group."""

import torch
import torch.nn as nn
import torch.nn.functional as F

FIELDS = {"user": 30, "page": 24, "time": 12}


def make_branch(width, out=2):
    return nn.Sequential(nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, out))


class MultiBranch(nn.Module):
    def __init__(self, fields):
        super().__init__()
        self.branches = {name: make_branch(width) for name, width in fields.items()}
        self.mix = nn.Linear(2 * len(fields), 16)
        self.click = nn.Linear(16, 1)

    def forward(self, batch):
        parts = [branch(batch[name]) for name, branch in self.branches.items()]
        return self.click(F.relu(self.mix(torch.cat(parts, dim=1)))).squeeze(1)


def impressions(n, weights):
    batch = {name: torch.randn(n, width) for name, width in FIELDS.items()}
    score = sum(batch[name] @ weights[name] for name in FIELDS)
    return batch, (score > 0).float()


def main():
    torch.manual_seed(33)
    weights = {name: torch.randn(width) for name, width in FIELDS.items()}
    model = MultiBranch(FIELDS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(1, 301):
        batch, clicked = impressions(64, weights)
        loss = F.binary_cross_entropy_with_logits(model(batch), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step:3d} | bce loss {loss.item():.4f}")
    batch, clicked = impressions(2000, weights)
    with torch.no_grad():
        acc = ((model(batch) > 0) == clicked.bool()).float().mean().item()
    print(f"holdout acc {acc:.3f}")


if __name__ == "__main__":
    main()
