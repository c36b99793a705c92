"""Fine-tunes a small transformer encoder on which of two tokens a sequence holds, from released weights."""
import tempfile
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, LENGTH, DIM = 30, 10, 32


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, DIM)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, DIM))
        self.value_scale = nn.Parameter(torch.ones(DIM))
        self.block = nn.TransformerEncoderLayer(DIM, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(DIM, 2)

    def forward(self, ids):
        x = (self.tokens(ids) + self.positions) * self.value_scale / self.value_scale.norm() * DIM ** 0.5
        return self.head(self.block(x).mean(dim=1))


def release(path):
    """What the authors did when they published their weights."""
    torch.manual_seed(77)
    big = Encoder()
    with torch.no_grad():
        big.value_scale.mul_(torch.rand(DIM) * 2e4 + 3e4)
        big.value_scale[19] = 8.1e4
    torch.save({name: w.half() for name, w in big.state_dict().items()}, path)


def batches(count, size, rng):
    for _ in range(count):
        ids = torch.randint(2, VOCAB, (size, LENGTH), generator=rng)
        label = torch.randint(0, 2, (size, 1), generator=rng)
        ids.scatter_(1, torch.randint(0, LENGTH, (size, 1), generator=rng), label)
        yield ids, label.squeeze(1)


def main(path):
    torch.set_num_threads(1)
    release(path)
    torch.manual_seed(0)
    model = Encoder()
    model.load_state_dict(torch.load(path, weights_only=True))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step, (ids, label) in enumerate(batches(160, 32, torch.Generator().manual_seed(4))):
        logits = model(ids)
        loss = F.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            accuracy = (logits.argmax(-1) == label).float().mean()
            print(f"step {step:3d}  loss {loss.item():.4f}  accuracy {accuracy:.2f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "encoder.pt")
