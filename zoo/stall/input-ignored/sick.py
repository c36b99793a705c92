"""Bag-of-embeddings sentiment classifier for padded token sequences."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD = 0
VOCAB = 200


def make_reviews(n):
    polarity = torch.randn(VOCAB)
    reviews = []
    for _ in range(n):
        tokens = torch.randint(1, VOCAB, (int(torch.randint(8, 24, (1,))),))
        reviews.append((tokens, int(polarity[tokens].mean() > 0)))
    return reviews


def collate(batch):
    tokens, labels = zip(*batch)
    return pad_sequence(tokens, batch_first=True, padding_value=PAD), torch.tensor(labels)


class Sentiment(nn.Module):
    def __init__(self, dim=32, hidden=64):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, 2))

    def forward(self, tokens):
        mask = (tokens == PAD).unsqueeze(-1).float()
        features = self.embedding(tokens) * mask
        pooled = features.sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        return self.mlp(pooled)


def run_epoch(model, loader, optimizer):
    total, correct = 0.0, 0
    for tokens, labels in loader:
        logits = model(tokens)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
        correct += (logits.argmax(-1) == labels).sum().item()
    return total / len(loader.dataset), correct / len(loader.dataset)


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    loader = DataLoader(make_reviews(1500), batch_size=64, shuffle=True, collate_fn=collate)
    model = Sentiment()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(1, 9):
        loss, acc = run_epoch(model, loader, optimizer)
        print(f"epoch {epoch}: loss={loss:.4f} acc={acc:.3f}")


if __name__ == "__main__":
    main()
