"""Classify short documents; the word vectors stay fixed, the rest is trained."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LENGTH, TOPICS = 80, 10, 5


class DocumentModel(nn.Module):
    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.embed_rnn = nn.GRU(dim, hidden, batch_first=True)
        self.embed_dense = nn.Linear(hidden, hidden)
        self.embed_out = nn.Linear(hidden, TOPICS, bias=False)
        self.prior = nn.Parameter(torch.zeros(TOPICS))

    def forward(self, tokens):
        states, _ = self.embed_rnn(self.embed(tokens))
        doc = torch.relu(self.embed_dense(states.mean(dim=1)))
        return self.embed_out(doc) + self.prior


def freeze_embeddings(model):
    for name, param in model.named_parameters():
        if name.startswith("embed."):
            param.requires_grad = False


def word_vectors(count, dim):
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(300))


def documents(n):
    topics = torch.randint(0, TOPICS, (n,))
    tokens = torch.randint(0, VOCAB, (n, LENGTH))
    keyword = topics * 3 + torch.randint(0, 3, (n,))
    tokens[torch.arange(n), torch.randint(0, LENGTH, (n,))] = keyword
    tokens[torch.arange(n), torch.randint(0, LENGTH, (n,))] = keyword
    return tokens, topics


def main():
    torch.manual_seed(13)
    train_loader = DataLoader(TensorDataset(*documents(1600)), batch_size=64, shuffle=True)
    test_tokens, test_topics = documents(400)

    model = DocumentModel()
    model.embed.weight.data.copy_(word_vectors(VOCAB, 32))
    freeze_embeddings(model)
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"trainable parameters: {trainable}")
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(8):
        model.train()
        total = 0.0
        for tokens, topics in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(tokens), topics)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = (model(test_tokens).argmax(1) == test_topics).float().mean().item()
        print(f"epoch {epoch + 1} loss {total / len(train_loader):.4f} accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
