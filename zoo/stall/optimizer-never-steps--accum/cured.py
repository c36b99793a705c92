"""Sentiment-like classification of short token sequences with an LSTM."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, size, vocab=60, length=12, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(0, vocab, (size, length), generator=g)
        mood = torch.where(torch.arange(vocab) % 3 == 0, 1.0, -0.5)
        self.labels = (mood[self.tokens].sum(1) > 0).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.tokens[i], self.labels[i]


class SentimentLSTM(nn.Module):
    def __init__(self, vocab=60, dim=24, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.out(states.mean(dim=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(1)
    loader = DataLoader(Reviews(384), batch_size=args.batch, shuffle=True)
    model = SentimentLSTM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        epoch_loss, right = 0.0, 0
        for i, (tokens, label) in enumerate(loader):
            logits = model(tokens)
            loss = F.cross_entropy(logits, label)
            (loss / args.accum).backward()
            if (i + 1) % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()
            epoch_loss += loss.item() / len(loader)
            right += (logits.argmax(1) == label).sum().item()
        print(f"[{epoch + 1:02d}] train loss {epoch_loss:.4f} train acc {right / 384:.3f}")


if __name__ == "__main__":
    main()
