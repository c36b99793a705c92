"""LoRA on attention projections: B is zero at the start, so A has no gradient in the first step and the first update is B's alone."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRA(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.empty(rank, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.A), self.B)


class Encoder(nn.Module):
    def __init__(self, dim=32, vocab=40):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.head = nn.Linear(dim, 3)

    def forward(self, ids):
        h = self.emb(ids)
        h = h + F.scaled_dot_product_attention(self.q(h), self.k(h), self.v(h))
        return self.head(h.mean(1))


def main():
    torch.manual_seed(16)
    torch.set_num_threads(1)
    model = Encoder()
    for p in model.parameters():
        p.requires_grad_(False)
    model.q, model.v = LoRA(model.q), LoRA(model.v)
    model.head.requires_grad_(True)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=1e-2)
    for step in range(150):
        y = torch.randint(0, 3, (32,))
        ids = torch.randint(3, 40, (32, 6))
        ids[:, 2] = y
        loss = F.cross_entropy(model(ids), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step:3d} loss {loss.item():.4f} |B| {model.v.B.norm().item():.4f}")


if __name__ == "__main__":
    main()
