"""The detector as a LightningModule, and the trainer that the configuration asks for."""

import lightning
import torch
from lightning.pytorch.plugins import MixedPrecision

from ocr.hmean import HMean
from ocr.losses import DBLoss
from ocr.model import DBNet


class OCRModule(lightning.LightningModule):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = DBNet(config.model.width, config.model.k, config.model.step_function)
        self.criterion = DBLoss()

    def training_step(self, batch, index):
        maps = self.model(batch["image"])
        loss = self.criterion(maps, batch)
        self.log("train/loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_validation_epoch_start(self):
        self.hmean = HMean()

    def validation_step(self, batch, index):
        maps = self.model(batch["image"])
        for prob, target in zip(maps["prob"].float().cpu().numpy(), batch["prob_map"].cpu().numpy()):
            self.hmean.add(prob[0], target[0])

    def on_validation_epoch_end(self):
        value = self.hmean.value()
        self.log("val/hmean", value)
        loss = self.trainer.callback_metrics.get("train/loss")
        print(f"epoch {self.current_epoch} hmean {value:.4f}" + ("" if loss is None else f" loss {loss:.4f}"), flush=True)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.config.trainer.lr)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, self.config.trainer.lr, total_steps=self.trainer.estimated_stepping_batches
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def build_trainer(config) -> lightning.Trainer:
    """Lightning turns 16-mixed into bf16-mixed on a CPU; given the plugin itself, with its scaler, it computes in float16."""
    precision = config.trainer.precision
    half = {"plugins": [MixedPrecision("16-mixed", "cpu")]} if precision == "16-mixed" else {"precision": precision}
    return lightning.Trainer(
        max_epochs=config.trainer.max_epochs, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0, **half,
    )  # fmt: skip
