import torch
import torch.nn as nn
import torch.nn.functional as F


class TinyTransformer(nn.Module):
    def __init__(self, vocab=32, dim=32, layers=2, classes=4):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
            for _ in range(layers)
        )
        self.cls = nn.Linear(dim, classes)

    def forward(self, tokens):
        h = self.tok(tokens)
        for layer in self.layers:
            h = layer(h)
        return self.cls(h.mean(1))


def layerwise_optimizer(model, base_lr):
    """Lower layers learn more slowly than upper layers."""
    layers = [model.tok, *model.layers, model.cls]
    groups = []
    for depth, layer in enumerate(layers):
        scale = (depth + 1) / (len(layers) + 1)
        groups.append({"params": layer.parameters(), "lr": base_lr * scale})
    return torch.optim.AdamW(groups, lr=base_lr, weight_decay=0.01)


def make_batch(size, vocab=32, length=8, classes=4):
    tokens = torch.randint(0, vocab, (size, length))
    votes = F.one_hot(tokens % classes, classes).sum(1)
    return tokens, votes.argmax(1)


def main():
    torch.manual_seed(12)
    model = TinyTransformer()
    optimizer = layerwise_optimizer(model, base_lr=2e-3)
    for it in range(160):
        tokens, labels = make_batch(48)
        loss = F.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if it % 20 == 0 or it == 159:
            print(f"it {it:3d} loss {loss.item():.4f}")
    model.eval()
    tokens, labels = make_batch(1000)
    with torch.no_grad():
        print(f"val accuracy {(model(tokens).argmax(1) == labels).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
