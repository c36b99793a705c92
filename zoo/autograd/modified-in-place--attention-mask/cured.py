"""Next-token prediction with a hand-written causal attention; LightningModule."""
import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class CausalAttention(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.register_buffer("future", torch.ones(length, length).triu(1).bool())

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        future = self.future
        attn = F.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        return attn @ v


class TinyLM(L.LightningModule):
    def __init__(self, vocab=17, length=8, dim=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Parameter(0.1 * torch.randn(length, dim))
        self.attn, self.head = CausalAttention(dim, length), nn.Linear(dim, vocab)

    def training_step(self, batch, index):
        ids, = batch
        h = self.tok(ids[:, :-1]) + self.pos
        loss = F.cross_entropy(self.head(h + self.attn(h)).flatten(0, 1), ids[:, 1:].flatten())
        if index % 20 == 0:
            print(f"epoch {self.current_epoch} batch {index}: {loss.item():.4f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=5e-3)


def main():
    torch.set_num_threads(1)
    L.seed_everything(0, verbose=False)
    start, stride = torch.randint(0, 17, (960, 1)), torch.randint(1, 4, (960, 1))
    ids = (start + stride * torch.arange(9)) % 17
    trainer = L.Trainer(accelerator="cpu", max_epochs=3, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(TinyLM(), DataLoader(TensorDataset(ids), batch_size=32, shuffle=True))


if __name__ == "__main__":
    main()
