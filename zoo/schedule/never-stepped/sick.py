"""Tells ten kinds of gestures apart from the acceleration of a wrist."""
import math

import torch
from torch import nn

KINDS, LENGTH, EPOCHS, BATCH = 10, 64, 12, 50
PEAK_RATE, WARM_UP = 0.2, 400


def gestures(count, generator):
    kinds = torch.randint(0, KINDS, (count,), generator=generator)
    time = torch.linspace(0, 1, LENGTH)
    pitch = 1 + kinds.float()
    phase = torch.rand(count, generator=generator)[:, None] * 0.2
    waves = torch.stack([torch.sin(math.tau * (pitch[:, None] * time + phase)), torch.cos(math.tau * (pitch[:, None] * time / 2 + phase))], 1)
    return waves + 0.3 * torch.randn(waves.shape, generator=generator), kinds


class Trainer:
    def __init__(self, model, steps):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=PEAK_RATE)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: self.factor(step, steps))
        self.criterion = nn.CrossEntropyLoss()

    @staticmethod
    def factor(step, steps):
        if step < WARM_UP:
            return (step + 1) / WARM_UP
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - WARM_UP) / steps)))

    def update(self, signal, kind):
        loss = self.criterion(self.model(signal), kind)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    def epoch(self, signals, kinds, generator):
        order = torch.randperm(len(signals), generator=generator)
        losses = [self.update(signals[part], kinds[part]) for part in order.split(BATCH)]
        return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    signals, kinds = gestures(3000, generator)
    model = nn.Sequential(
        nn.Conv1d(2, 16, 7, stride=2, padding=3), nn.ReLU(), nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * LENGTH // 4, KINDS),
    )
    trainer = Trainer(model, EPOCHS * len(signals) // BATCH)
    for epoch in range(EPOCHS):
        print(f"epoch {epoch}: loss {trainer.epoch(signals, kinds, generator):.4f}")
    fresh, answers = gestures(1000, generator)
    with torch.no_grad():
        print(f"accuracy {(model(fresh).argmax(1) == answers).float().mean():.3f}")


if __name__ == "__main__":
    main()
