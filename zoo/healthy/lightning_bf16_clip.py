"""Lightning with bf16-mixed precision and gradient clipping: no scaler, and none is needed."""
import logging
import warnings

import lightning.pytorch as pl
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.2, momentum=0.9)


def main():
    torch.set_num_threads(1)
    pl.seed_everything(3, verbose=False)
    y = torch.randint(0, 4, (1600,))
    x = torch.randn(4, 12)[y] + torch.randn(1600, 12)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    trainer = pl.Trainer(
        max_epochs=3, precision="bf16-mixed", gradient_clip_val=0.5, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    model = Classifier()
    trainer.fit(model, loader)
    with torch.no_grad():
        print(f"accuracy {(model.eval().net(x).argmax(1) == y).float().mean():.3f}")


if __name__ == "__main__":
    main()
