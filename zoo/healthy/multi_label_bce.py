"""Multi-label tagging with float multi-hot targets, which look like one-hot labels, and a small loss from sparsity."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(2024)

N_TAGS = 30


def make_documents(n, tag_words):
    tags = (torch.rand(n, N_TAGS) < 0.07).float()
    tags[torch.arange(n), torch.randint(0, N_TAGS, (n,))] = 1.0
    return tags @ tag_words + 0.5 * torch.randn(n, 60), tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.LayerNorm(60), nn.Linear(60, 128), nn.SiLU())
        self.tags = nn.Linear(128, N_TAGS)

    def forward(self, x):
        return self.tags(self.body(x))


def micro_f1(logits, target):
    pred = logits > 0
    tp = (pred & (target > 0)).sum()
    return (2 * tp / (pred.sum() + target.sum()).clamp(min=1)).item()


def main():
    words = torch.randn(N_TAGS, 60)
    x, t = make_documents(3000, words)
    xv, tv = make_documents(500, words)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(12):
        model.train()
        for i, idx in enumerate(torch.randperm(3000).chunk(50)):
            optimizer.zero_grad()
            loss = criterion(model(x[idx]), t[idx])
            loss.backward()
            optimizer.step()
            if i % 25 == 0:
                print(f"[{epoch}:{i:02d}] bce_loss: {loss.item():.4f}")
        model.eval()
        with torch.no_grad():
            logits = model(xv)
        print(f"epoch {epoch} val_loss: {criterion(logits, tv).item():.4f} micro_f1: {micro_f1(logits, tv):.3f}")


if __name__ == "__main__":
    main()
