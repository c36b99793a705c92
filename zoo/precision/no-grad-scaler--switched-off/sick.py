import torch
from torch import nn

CONFIG = {"amp": True, "dtype": torch.float16, "lr": 2e-3, "accumulate": 4, "steps": 80, "window": 32}


class Forecaster(nn.Module):
    """The next values of a load curve from the last ones."""

    def __init__(self, window, horizon=8, width=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(window, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, horizon)
        )

    def forward(self, past):
        return self.layers(past)


class Runner:
    def __init__(self, model, config):
        self.model, self.config = model, config
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
        self.scaler = torch.amp.GradScaler(enabled=config["amp"])
        self.generator = torch.Generator().manual_seed(21)

    def batch(self, size=256):
        start = torch.rand(size, 1, generator=self.generator) * 60
        hours = start + torch.arange(self.config["window"] + 8)
        load = 4e-3 * torch.sin(hours / 3.8) + 2e-3 * torch.sin(hours / 1.3) + 1e-4 * torch.randn(hours.shape, generator=self.generator)
        return load[:, : self.config["window"]], load[:, self.config["window"] :]

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for _ in range(self.config["accumulate"]):
            past, future = self.batch()
            with torch.autocast("cpu", dtype=self.config["dtype"], enabled=self.config["amp"]):
                loss = nn.functional.mse_loss(self.model(past), future)
            self.scaler.scale(loss / self.config["accumulate"]).backward()
            total += loss.item()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return total / self.config["accumulate"]


def main():
    torch.manual_seed(6)
    runner = Runner(Forecaster(CONFIG["window"]), CONFIG)
    for step in range(CONFIG["steps"]):
        loss = runner.step()
        if step % 20 == 0:
            print(f"{step:4d} {loss:.3e}")


if __name__ == "__main__":
    main()
