"""Tag every step of a sequence with the running parity class of its symbols."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SYMBOLS, TAGS, STEPS = 12, 4, 14


class Tagger(nn.Module):
    def __init__(self, dim=24, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, dim)
        self.conv = nn.Conv1d(dim, hidden, 3, padding=1)
        self.proj = nn.Linear(hidden, TAGS)

    def forward(self, ids):
        h = torch.relu(self.conv(self.embed(ids).transpose(1, 2)))
        return self.proj(h.transpose(1, 2))


def batch_of(size):
    ids = torch.randint(SYMBOLS, (size, STEPS))
    left = F.pad(ids, (1, 0))[:, :-1]
    tags = (ids % 2) * 2 + (left > SYMBOLS // 2).long()
    return ids, tags


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, 301):
        ids, tags = batch_of(64)
        logits = model(ids)
        target = F.one_hot(tags, TAGS).float()
        loss = F.cross_entropy(logits.transpose(1, 2), target.transpose(1, 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            acc = (logits.argmax(-1) == tags).float().mean().item()
            print(f"step {step:3d} loss={loss.item():.4f} tag_acc={acc:.3f}")


if __name__ == "__main__":
    main()
