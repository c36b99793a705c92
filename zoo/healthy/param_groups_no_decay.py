"""AdamW with decay and no-decay groups and a third group for the head, minGPT style."""
import torch
import torch.nn as nn


class Config:
    d_model = 32
    weight_decay = 0.1
    lr = 2e-3
    head_lr = 6e-3
    steps = 350


class SetClassifier(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.proj = nn.Linear(6, c.d_model)
        self.attn = nn.MultiheadAttention(c.d_model, 4, batch_first=True)
        self.ln = nn.LayerNorm(c.d_model)
        self.query = nn.Parameter(torch.zeros(1, 1, c.d_model))
        self.head = nn.Linear(c.d_model, 3)
        nn.init.normal_(self.query, std=0.02)

    def forward(self, x):
        h = self.proj(x)
        pooled, _ = self.attn(self.query.expand(len(x), -1, -1), h, h, need_weights=False)
        return self.head(self.ln(pooled.squeeze(1)))


def configure_optimizers(model, c):
    decay, no_decay, head = [], [], []
    for name, p in model.named_parameters():
        if name.startswith("head"):
            head.append(p)
        elif p.ndim >= 2 and "query" not in name:
            decay.append(p)
        else:
            no_decay.append(p)
    groups = [
        {"params": decay, "weight_decay": c.weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
        {"params": head, "weight_decay": 0.0, "lr": c.head_lr},
    ]
    print("parameters: %d decayed, %d not, %d in the head" % tuple(sum(p.numel() for p in g["params"]) for g in groups))
    return torch.optim.AdamW(groups, lr=c.lr, betas=(0.9, 0.95))


def bags(n):
    """A bag of 8 points; the class is the corner that its special point lies in."""
    x = torch.randn(n, 8, 6) * 0.5
    y = torch.randint(0, 3, (n,))
    place = torch.randint(0, 8, (n,))
    x[torch.arange(n), place, :3] += 3 * torch.eye(3)[y]
    return x, y


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3407)
    c = Config()
    model = SetClassifier(c)
    optimizer = configure_optimizers(model, c)
    for step in range(c.steps):
        x, y = bags(64)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 35 == 0 or step == c.steps - 1:
            print(f"step {step}: loss {loss.item():.5f}")
    model.eval()
    with torch.no_grad():
        x, y = bags(1000)
        print(f"accuracy {(model(x).argmax(1) == y).float().mean():.3f}")


if __name__ == "__main__":
    main()
