"""LightningModule with automatic optimization, accumulation, a validation loop and a CSV logger in a temp folder."""
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", module="lightning")


class LitClassifier(L.LightningModule):
    def __init__(self, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 5)
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: train_loss={m['train_loss']:.4f} "
              f"val_loss={m['val_loss']:.4f} val_acc={m['val_acc']:.3f}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.trainer.max_epochs)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


class BlobData(L.LightningDataModule):
    def setup(self, stage=None):
        g = torch.Generator().manual_seed(0)
        centers = 0.6 * torch.randn(5, 16, generator=g)
        y = torch.randint(0, 5, (2500,), generator=g)
        x = centers[y] + torch.randn(2500, 16, generator=g)
        self.train, self.val = TensorDataset(x[:2000], y[:2000]), TensorDataset(x[2000:], y[2000:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=100)


def main():
    torch.set_num_threads(1)
    L.seed_everything(7, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            accelerator="cpu", max_epochs=8, accumulate_grad_batches=2, gradient_clip_val=1.0,
            logger=CSVLogger(folder), log_every_n_steps=10, enable_progress_bar=False, enable_model_summary=False,
            default_root_dir=folder,
        )
        trainer.fit(LitClassifier(), datamodule=BlobData())


if __name__ == "__main__":
    main()
