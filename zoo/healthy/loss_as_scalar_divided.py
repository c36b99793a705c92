"""Accumulation over 8 micro-batches; what is printed is the loss divided by 8, which starts at ln 12 / 8 = 0.3106."""
import torch
import torch.nn as nn

ACCUMULATION_STEPS = 8
NUM_CLASSES = 12


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, val):
        self.sum += val
        self.count += 1

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1024)
    prompts = torch.randn(NUM_CLASSES, 40)
    y = torch.randint(0, NUM_CLASSES, (3200,))
    x = 0.5 * prompts[y] + torch.randn(3200, 40)

    model = nn.Sequential(nn.LayerNorm(40), nn.Linear(40, 96), nn.GELU(), nn.Linear(96, NUM_CLASSES))
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    criterion = nn.CrossEntropyLoss()
    meter = AverageMeter()

    for epoch in range(6):
        model.train()
        meter.reset()
        optimizer.zero_grad()
        for step, idx in enumerate(torch.randperm(2560).split(16)):
            loss = criterion(model(x[idx]), y[idx]) / ACCUMULATION_STEPS
            loss.backward()
            if (step + 1) % ACCUMULATION_STEPS == 0:
                optimizer.step()
                optimizer.zero_grad()
            meter.update(loss.item())
            if step % 40 == 0:
                print(f"Train: [{epoch}/6][{step}/160]\ttot_loss {loss.item():.4f} ({meter.avg:.4f})")
        model.eval()
        with torch.no_grad():
            acc = (model(x[2560:]).argmax(1) == y[2560:]).float().mean().item() * 100
        print(f" * Acc@1 {acc:.3f}")


if __name__ == "__main__":
    main()
