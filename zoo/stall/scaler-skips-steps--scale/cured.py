import torch
import torch.nn as nn


class MixedPrecisionTrainer:
    def __init__(self, model, optimizer, scaler):
        self.model = model
        self.optimizer = optimizer
        self.scaler = scaler
        self.criterion = nn.CrossEntropyLoss()

    def training_step(self, x, y):
        self.optimizer.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.float16):
            loss = self.criterion(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, x, y):
        return (self.model(x).argmax(1) == y).float().mean().item()


def spirals(n, arms=3):
    arm = torch.randint(0, arms, (n,))
    radius = torch.rand(n)
    angle = 4 * radius + arm * 2 * torch.pi / arms + 0.15 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), arm


def main():
    torch.manual_seed(14)
    x, y = spirals(1500)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_factor=1.5, backoff_factor=0.95)
    trainer = MixedPrecisionTrainer(model, optimizer, scaler)

    for epoch in range(1, 11):
        losses = [trainer.training_step(x[i], y[i]) for i in torch.randperm(len(x)).split(75)]
        print(f"epoch {epoch:2d}: loss {sum(losses) / len(losses):.4f}, accuracy {trainer.evaluate(x, y):.3f}")


if __name__ == "__main__":
    main()
