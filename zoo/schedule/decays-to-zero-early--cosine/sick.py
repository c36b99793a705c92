"""Trainer with a hand-written half-cosine schedule; regression on two-dimensional waves."""
import math

import torch
import torch.nn as nn


def cosine_lr(step, total, base_lr, min_lr=0.0):
    progress = min(1.0, step / total)
    return min_lr + 0.5 * (base_lr - min_lr) * (1 + math.cos(math.pi * progress))


class Trainer:
    def __init__(self, model, base_lr, epochs, steps_per_epoch=1):
        self.model = model
        self.base_lr = base_lr
        self.epochs = epochs
        self.total_steps = epochs * steps_per_epoch
        self.optimizer = torch.optim.Adam(model.parameters(), lr=base_lr)
        self.step_count = 0

    def adjust_lr(self):
        lr = cosine_lr(self.step_count, self.total_steps, self.base_lr)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        return lr

    def fit(self, batches):
        for epoch in range(self.epochs):
            running = 0.0
            for x, y in batches:
                lr = self.adjust_lr()
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                self.step_count += 1
                running += loss.item()
            print(f"epoch {epoch + 1} | lr {lr:.2e} | mse {running / len(batches):.5f}")


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    x = 2 * torch.rand(3200, 2) - 1
    y = torch.sin(3 * x[:, :1]) * torch.cos(2 * x[:, 1:]) + 0.02 * torch.randn(3200, 1)
    batches = list(zip(x.split(64), y.split(64)))
    model = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
    trainer = Trainer(model, base_lr=5e-3, epochs=10)
    trainer.fit(batches)


if __name__ == "__main__":
    main()
