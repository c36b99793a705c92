"""Report 003: a WandbLogger, and a callback that logs to W&B with the trainer's own step. The second word puts a SteadyLogger in front."""

import sys

import lightning.pytorch as pl
import torch
import wandb
from lightning.pytorch.loggers import WandbLogger
from torch.utils.data import DataLoader, TensorDataset


class Model(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).square().mean()
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.layer(batch[0]).square().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Profiler(pl.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        wandb.log({"profile/seconds": float(trainer.global_step)}, step=trainer.global_step)

    def on_validation_end(self, trainer, module):
        if not trainer.sanity_checking:
            wandb.log({"profile/epoch": float(trainer.current_epoch)}, step=trainer.current_epoch)


settings = wandb.Settings(silent=True, x_disable_stats=True, x_disable_meta=True)
logger = WandbLogger(save_dir=sys.argv[1], offline=True, settings=settings)
if sys.argv[2] == "steady":
    from trainsleuth.stepping.lightning import SteadyLogger

    logger = SteadyLogger(logger)
logger.experiment  # noqa: B018  (the run begins)
data = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=4)
trainer = pl.Trainer(
    max_epochs=3, logger=logger, callbacks=[Profiler()], log_every_n_steps=1, enable_progress_bar=False, enable_checkpointing=False,
    enable_model_summary=False, accelerator="cpu",
)  # fmt: skip
trainer.fit(Model(), data, data)
wandb.finish()
wandb.teardown()
