"""Two attention layers written by hand with -inf masks (causal, and padding on the right): every row keeps at least one key."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, PAD = 15, 0


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        return self.o(torch.softmax(scores + mask, dim=-1) @ self.v(x))


class Decoder(nn.Module):
    def __init__(self, dim=32, length=9):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, dim, padding_idx=PAD), nn.Parameter(0.1 * torch.randn(length, dim))
        self.layers = nn.ModuleList(Attention(dim) for _ in range(2))
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        length = ids.shape[1]
        causal = torch.full((length, length), float("-inf")).triu(1)
        padding = torch.zeros(ids.shape).masked_fill(ids == PAD, float("-inf"))
        h = self.tok(ids) + self.pos[:length]
        for layer in self.layers:
            h = h + layer(h, causal + padding[:, None, :])
        return self.head(h)


def batch(n, g):
    start, stride = torch.randint(0, 14, (n, 1), generator=g), torch.randint(1, 3, (n, 1), generator=g)
    ids = 1 + (start + stride * torch.arange(10)) % 14
    length = torch.randint(4, 11, (n, 1), generator=g)
    return ids.masked_fill(torch.arange(10) >= length, PAD)


def main():
    torch.manual_seed(15)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(15)
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for step in range(160):
        ids = batch(32, g)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
