"""Retrieval of questions and answers with bags of words and a cosine ranking loss."""
import torch
from torch import nn

from texts import pairs


class Tower(nn.Module):
    def __init__(self, vocab, dim=24):
        super().__init__()
        self.words = nn.EmbeddingBag(vocab, dim, mode="sum")

    def forward(self, bags):
        flat = torch.tensor([word for bag in bags for word in bag], dtype=torch.long)
        offsets = torch.tensor([0] + [len(bag) for bag in bags[:-1]]).cumsum(0)
        return self.words(flat, offsets)


def cosine(a, b):
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1)).clamp(min=1e-8)


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    asked, answered = Tower(120), Tower(120)
    params = list(asked.parameters()) + list(answered.parameters())
    optimizer = torch.optim.Adagrad(params, lr=0.1)
    hinge = nn.MarginRankingLoss(margin=0.4)
    for step, (questions, answers) in enumerate(pairs(steps=200, size=24)):
        q, a = asked(questions), answered(answers)
        right, wrong = cosine(q, a), cosine(q, a.roll(1, 0))
        loss = hinge(right, wrong, torch.ones_like(right))
        assert torch.isfinite(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"{step:4d} {loss.item():.4f}")


if __name__ == "__main__":
    main()
