"""Train and validate a detector of faulty bearings; training and validation are functions that each log for themselves."""
import tempfile

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(5)
torch.set_num_threads(1)
RUN = tempfile.mkdtemp(prefix="bearings-")


def signals(n):
    faulty = torch.randint(0, 2, (n,))
    x = torch.randn(n, 32)
    x[:, 8] += 1.5 * faulty
    return x, faulty


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        self.log = SummaryWriter(f"{RUN}/train")
        self.step = 0

    def epoch(self):
        for _ in range(30):
            x, y = signals(64)
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.log.add_scalar("loss", loss.item(), self.step)
            self.step += 1


class Validator:
    def __init__(self, model):
        self.model = model
        self.log = SummaryWriter(f"{RUN}/val")
        self.data = signals(512)

    @torch.no_grad()
    def run(self, step):
        self.model.eval()
        x, y = self.data
        logits = self.model(x)
        self.log.add_scalar("loss", nn.functional.cross_entropy(logits, y).item(), step)
        self.log.add_scalar("accuracy", (logits.argmax(1) == y).float().mean().item(), step)
        self.model.train()
        return (logits.argmax(1) == y).float().mean().item()


def main():
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
    trainer, validator = Trainer(model), Validator(model)
    for epoch in range(6):
        trainer.epoch()
        print(f"epoch {epoch}: accuracy {validator.run(trainer.step):.3f}")


if __name__ == "__main__":
    main()
