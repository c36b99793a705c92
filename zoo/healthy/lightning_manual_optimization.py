"""Lightning GAN with manual optimization and two optimizers that are toggled in turn."""
import logging
import tempfile
import warnings

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", ".*does not have many workers.*")


class GAN(LightningModule):
    def __init__(self, latent_dim=4):
        super().__init__()
        self.automatic_optimization = False
        self.latent_dim = latent_dim
        self.generator = nn.Sequential(nn.Linear(latent_dim, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
        self.discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32),
                                           nn.LeakyReLU(0.2), nn.Linear(32, 1))
        self.adversarial_loss = nn.BCEWithLogitsLoss()

    def forward(self, z):
        return self.generator(z)

    def training_step(self, batch):
        real, = batch
        opt_g, opt_d = self.optimizers()
        z = torch.randn(len(real), self.latent_dim, device=self.device)
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

        self.toggle_optimizer(opt_g)
        g_loss = self.adversarial_loss(self.discriminator(self(z)), ones)
        self.manual_backward(g_loss)
        opt_g.step()
        opt_g.zero_grad()
        self.untoggle_optimizer(opt_g)

        self.toggle_optimizer(opt_d)
        d_loss = (self.adversarial_loss(self.discriminator(real), ones)
                  + self.adversarial_loss(self.discriminator(self(z).detach()), zeros)) / 2
        self.manual_backward(d_loss)
        opt_d.step()
        opt_d.zero_grad()
        self.untoggle_optimizer(opt_d)
        self.log_dict({"g_loss": g_loss, "d_loss": d_loss})

    def validation_step(self, batch):
        real, = batch
        fake = self(torch.randn(len(real), self.latent_dim, device=self.device))
        gap = (fake.mean(0) - real.mean(0)).norm() + (fake.T.cov() - real.T.cov()).norm()
        self.log("val_moment_gap", gap)

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:2d}  g_loss {m['g_loss']:.3f}  d_loss {m['d_loss']:.3f}  "
              f"moment gap {m['val_moment_gap']:.3f}")

    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=1e-3, betas=(0.0, 0.99))
        opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=2e-3, betas=(0.0, 0.99))
        return opt_g, opt_d


def cloud(n):
    return TensorDataset(torch.randn(n, 2) @ torch.tensor([[1.0, 0.6], [0.0, 0.5]]) + torch.tensor([2.0, -1.0]))


def main():
    torch.set_num_threads(1)
    seed_everything(1, verbose=False)
    train, val = DataLoader(cloud(5000), batch_size=100, shuffle=True), DataLoader(cloud(1000), batch_size=1000)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False,
                          enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder)
        trainer.fit(GAN(), train, val)


if __name__ == "__main__":
    main()
