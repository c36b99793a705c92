"""Transformer-like classifier with a layer norm written by hand."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class NormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, bias, eps=1e-5):
        std = (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt()
        hat = (x - x.mean(-1, keepdim=True)) / std
        ctx.save_for_backward(hat, std, gain)
        return gain * hat + bias

    @staticmethod
    def backward(ctx, grad):
        hat, std, gain = ctx.saved_tensors
        grad_hat = grad * gain
        grad_x = (grad_hat - grad_hat.mean(-1, keepdim=True) - hat * (grad_hat * hat).mean(-1, keepdim=True)) / std
        over = tuple(range(grad.dim() - 1))
        return grad_x, (grad * hat).sum(over), grad.sum(over), None


class HandNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return NormFunction.apply(x, self.gain, self.bias)


class Mixer(nn.Module):
    def __init__(self, vocab=24, length=8, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(
            nn.ModuleList([HandNorm(dim), nn.Linear(length, length), HandNorm(dim), nn.Linear(dim, dim)]) for _ in range(2)
        )
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        h = self.emb(ids)
        for norm1, over_time, norm2, over_width in self.blocks:
            h = h + over_time(norm1(h).transpose(1, 2)).transpose(1, 2)
            h = h + F.gelu(over_width(norm2(h)))
        return self.head(h.mean(1))


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    model = Mixer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(250):
        ids = torch.randint(0, 24, (48, 8))
        label = ((ids < 6).sum(1) > 1).long()
        logits = model(ids)
        loss = F.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{step:4d} loss {loss.item():.4f} acc {(logits.argmax(1) == label).float().mean():.2f}")


if __name__ == "__main__":
    main()
