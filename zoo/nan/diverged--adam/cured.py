"""Inverse kinematics with a deep network, as a LightningModule."""
import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Deep(L.LightningModule):
    def __init__(self, width=48, depth=6):
        super().__init__()
        layers = [nn.Linear(4, width), nn.ReLU()]
        for _ in range(depth - 2):
            layers += [nn.Linear(width, width), nn.ReLU()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 2))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self.net(x), y)
        if self.global_step % 10 == 0:
            print(f"step {self.global_step} loss {loss.item():.4g}")
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.995)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def main():
    torch.set_num_threads(1)
    L.seed_everything(9, verbose=False)
    angle = torch.rand(2000, 2) * 2
    hand = torch.stack([angle[:, 0].cos() + angle.sum(1).cos(), angle[:, 0].sin() + angle.sum(1).sin()], dim=1)
    loader = DataLoader(TensorDataset(torch.cat([hand, hand ** 2], dim=1), angle), batch_size=50, shuffle=True)
    L.Trainer(accelerator="cpu", max_epochs=4, logger=False, enable_checkpointing=False, enable_progress_bar=False,
              enable_model_summary=False).fit(Deep(), loader)


if __name__ == "__main__":
    main()
