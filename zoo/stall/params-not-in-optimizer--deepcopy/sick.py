import copy

import torch
import torch.nn.functional as F
from torch import nn


class TextCNN(nn.Module):
    def __init__(self, vocab_size, num_labels, dim=32, channels=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim)
        self.conv = nn.Conv1d(dim, channels, kernel_size=3)
        self.classifier = nn.Linear(channels, num_labels)

    def forward(self, tokens):
        x = self.embed(tokens).transpose(1, 2)
        x = torch.relu(self.conv(x)).amax(dim=-1)
        return self.classifier(x)


class Trainer:
    """Keeps the best weights and restores them at the end of training."""

    def __init__(self, model, optimizer):
        self.model = copy.deepcopy(model)
        self.optimizer = optimizer
        self.best_loss = float("inf")
        self.best_state = copy.deepcopy(self.model.state_dict())

    def train_epoch(self, batches):
        self.model.train()
        losses = []
        for tokens, labels in batches:
            loss = F.cross_entropy(self.model(tokens), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        mean = sum(losses) / len(losses)
        if mean < self.best_loss:
            self.best_loss = mean
            self.best_state = copy.deepcopy(self.model.state_dict())
        return mean

    @torch.no_grad()
    def accuracy(self, batches):
        self.model.eval()
        hits = [(self.model(tokens).argmax(1) == labels).float().mean() for tokens, labels in batches]
        return torch.stack(hits).mean().item()


def make_batches(count, size=32, length=16, vocab_size=50, num_labels=5):
    batches = []
    for _ in range(count):
        tokens = torch.randint(num_labels * 2, vocab_size, (size, length))
        labels = torch.randint(0, num_labels, (size,))
        place = torch.randint(0, length - 1, (size,))
        rows = torch.arange(size)
        tokens[rows, place] = labels * 2
        tokens[rows, place + 1] = labels * 2 + 1
        batches.append((tokens, labels))
    return batches


def main():
    torch.manual_seed(3)
    train, valid = make_batches(30), make_batches(8)
    model = TextCNN(vocab_size=50, num_labels=5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    trainer = Trainer(model, optimizer)
    for epoch in range(6):
        loss = trainer.train_epoch(train)
        print(f"epoch {epoch}: loss={loss:.4f} val_acc={trainer.accuracy(valid):.3f}")


if __name__ == "__main__":
    main()
