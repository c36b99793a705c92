"""torch.compile(fullgraph=True), eager backend: parameters appear under _orig_mod, a graph break would raise."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Mixer(nn.Module):
    def __init__(self, tokens=6, dim=16, classes=4):
        super().__init__()
        self.proj = nn.Linear(4, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token_mix = nn.Linear(tokens, tokens)
        self.channel_mix = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.proj(x)
        x = x + self.token_mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channel_mix(self.norm2(x))
        return self.head(x.mean(1))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    patterns = torch.randn(4, 6, 4)
    y = torch.randint(0, 4, (3200,))
    x = patterns[y] + 1.2 * torch.randn(3200, 6, 4)

    model = Mixer()
    model = torch.compile(model, fullgraph=True, backend="eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(6):
        model.train()
        losses = []
        for idx in torch.randperm(2560).split(64):
            xb, yb = x[idx], y[idx]
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        model.eval()
        with torch.no_grad():
            acc = torch.cat([model(x[i:i + 64]).argmax(1) == y[i:i + 64] for i in range(2560, 3200, 64)]).float().mean()
        print(f"epoch {epoch}: loss {torch.stack(losses).mean().item():.4f} acc {acc.item():.3f}")


if __name__ == "__main__":
    main()
