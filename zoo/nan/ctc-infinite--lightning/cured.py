"""Word images to text with CTC; LightningModule."""
import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
LETTERS, CELL = 8, 4


class Words(Dataset):
    def __init__(self, count):
        g = torch.Generator().manual_seed(count)
        self.glyphs = torch.randn(LETTERS + 1, 6, CELL, generator=g)
        self.words = [1 + torch.randperm(LETTERS, generator=g)[: 2 + k % 4] for k in range(count)]
        self.words[140] = torch.tensor([3, 3, 5, 1])

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        word = self.words[i]
        strip = torch.cat([self.glyphs[c] for c in word], dim=1)
        return F.pad(strip, (0, 32 - strip.shape[1])) + 0.2 * torch.randn(6, 32), F.pad(word, (0, 8 - len(word))), len(word)


class Reader(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(6, 48, CELL, stride=CELL), nn.ReLU(), nn.Conv1d(48, 48, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(48, LETTERS + 1)

    def training_step(self, batch, index):
        strip, text, lengths = batch
        log_probs = self.head(self.conv(strip).transpose(1, 2)).log_softmax(-1).transpose(0, 1)
        frames = lengths
        loss = F.ctc_loss(log_probs, text, frames, lengths, blank=0, zero_infinity=True)
        if index % 10 == 0:
            print(f"epoch {self.current_epoch} batch {index} ctc {loss.item():.4f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=4e-3)


def main():
    torch.set_num_threads(1)
    L.seed_everything(1, verbose=False)
    trainer = L.Trainer(accelerator="cpu", max_epochs=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, gradient_clip_val=5.0)
    trainer.fit(Reader(), DataLoader(Words(640), batch_size=16, shuffle=True))


if __name__ == "__main__":
    main()
