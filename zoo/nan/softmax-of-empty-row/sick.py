"""Sentiment of short reviews with attention pooling over word vectors."""
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

GOOD = "great lovely superb charming moving witty".split()
BAD = "dull boring awful clumsy weak noisy".split()
PLAIN = "the film plot actor scene music was is a and very with".split()
RARE = "xylophonic quuxian zyzzyva".split()
VOCAB = {word: i + 1 for i, word in enumerate(GOOD + BAD + PLAIN)}


def write_reviews(n, seed):
    rng = random.Random(seed)
    reviews = []
    for k in range(n):
        label = rng.randint(0, 1)
        words = rng.choices(PLAIN, k=rng.randint(2, 9)) + rng.choices(GOOD if label else BAD, k=rng.randint(1, 3))
        rng.shuffle(words)
        if k == 701:
            words = RARE[:]
        reviews.append((words, label))
    return reviews


def encode(words):
    return torch.tensor([VOCAB[w] for w in words if w in VOCAB], dtype=torch.long)


def collate(batch):
    ids = pad_sequence([encode(words) for words, _ in batch], batch_first=True)
    return ids, torch.tensor([label for _, label in batch])


class AttentionPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Parameter(torch.randn(dim) / dim ** 0.5)

    def forward(self, h, pad):
        scores = h @ self.query
        scores = scores.masked_fill(pad, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return (weights.unsqueeze(-1) * h).sum(dim=1)


class Reviewer(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(len(VOCAB) + 1, dim, padding_idx=0)
        self.pool = AttentionPool(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        return self.head(self.pool(self.emb(ids), ids == 0))


def train(model, loader, optimizer, criterion):
    model.train()
    total, right = 0.0, 0
    for ids, label in loader:
        logits = model(ids)
        loss = criterion(logits, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(label)
        right += (logits.argmax(1) == label).sum().item()
    return total / len(loader.dataset), right / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(5)
    torch.set_num_threads(1)
    loader = DataLoader(write_reviews(1000, 5), batch_size=20, shuffle=True, collate_fn=collate)
    model = Reviewer()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        loss, accuracy = train(model, loader, optimizer, nn.CrossEntropyLoss())
        print(f"Epoch {epoch}: loss {loss:.3f}, accuracy {accuracy:.3f}")
