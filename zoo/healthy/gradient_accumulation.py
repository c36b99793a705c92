"""Correct gradient accumulation over four micro-batches, nanoGPT style."""
import torch
from torch import nn
from torch.nn import functional as F

# -----------------------------------------------------------------------------
gradient_accumulation_steps = 4
micro_batch_size = 16
max_iters = 300
learning_rate = 2e-3
grad_clip = 1.0
log_interval = 25
n_classes = 10
# -----------------------------------------------------------------------------


class MLP(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.ln = nn.LayerNorm(32)
        self.c_fc = nn.Linear(32, width)
        self.c_proj = nn.Linear(width, n_classes)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, targets=None):
        logits = self.c_proj(self.dropout(F.gelu(self.c_fc(self.ln(x)))))
        loss = F.cross_entropy(logits, targets) if targets is not None else None
        return logits, loss


def make_data(n, generator):
    centers = torch.randn(n_classes, 32, generator=torch.Generator().manual_seed(7)) * 0.5
    y = torch.randint(0, n_classes, (n,), generator=generator)
    return centers[y] + torch.randn(n, 32, generator=generator), y


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1337)
    g = torch.Generator().manual_seed(1)
    train_x, train_y = make_data(8000, g)
    val_x, val_y = make_data(1000, g)

    def get_batch():
        ix = torch.randint(len(train_x), (micro_batch_size,))
        return train_x[ix], train_y[ix]

    model = MLP()
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))

    X, Y = get_batch()  # fetch the very first batch
    for iter_num in range(max_iters):
        if iter_num % 100 == 0:
            model.eval()
            with torch.no_grad():
                _, val_loss = model(val_x, val_y)
            model.train()
            print(f"step {iter_num}: val loss {val_loss:.4f}")

        lossf = 0.0
        for micro_step in range(gradient_accumulation_steps):
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
            X, Y = get_batch()  # prefetch the next batch
            loss.backward()
            lossf += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

        if iter_num % log_interval == 0 or iter_num == max_iters - 1:
            print(f"iter {iter_num}: loss {lossf:.4f}")


if __name__ == "__main__":
    main()
