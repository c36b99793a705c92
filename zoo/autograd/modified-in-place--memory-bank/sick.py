"""Instance discrimination against a memory of past keys."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Memory(nn.Module):
    def __init__(self, size=256, dim=16):
        super().__init__()
        self.register_buffer("bank", F.normalize(torch.randn(size, dim), dim=1))
        self.cursor = 0

    def logits(self, query, key):
        positive = (query * key).sum(1, keepdim=True)
        negative = query @ self.bank.t()
        return torch.cat([positive, negative], dim=1) / 0.2

    def push(self, keys):
        n = len(keys)
        self.bank[self.cursor:self.cursor + n] = keys
        self.cursor = (self.cursor + n) % len(self.bank)


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    encoder = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 16))
    slow = copy.deepcopy(encoder).requires_grad_(False)
    memory = Memory()
    with torch.no_grad():
        memory.push(F.normalize(slow(torch.randn(256, 24)), dim=1))
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)
    for step in range(160):
        x = torch.randn(32, 24)
        query = F.normalize(encoder(x + 0.8 * torch.randn_like(x)), dim=1)
        with torch.no_grad():
            key = F.normalize(slow(x), dim=1)
        loss = F.cross_entropy(memory.logits(query, key), torch.zeros(32, dtype=torch.long))
        memory.push(key.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(slow.parameters(), encoder.parameters()):
                p.lerp_(q, 0.05)
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
