"""Video-like clips: frames are encoded one by one and averaged."""

from types import SimpleNamespace

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

config = SimpleNamespace(BATCH_SIZE=4, ACCUMULATION_STEPS=8, EPOCHS=4, LR=0.05, NUM_CLASSES=12, FRAMES=4)


class FrameModel(nn.Module):
    def __init__(self, inputs=48, width=64):
        super().__init__()
        self.frame = nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.LayerNorm(width))
        self.head = nn.Linear(width, config.NUM_CLASSES)

    def forward(self, clips):
        return self.head(self.frame(clips).mean(dim=1))


def clips(n, inputs=48):
    g = torch.Generator().manual_seed(5)
    actions = torch.randn(config.NUM_CLASSES, config.FRAMES, inputs, generator=g)
    labels = torch.randint(0, config.NUM_CLASSES, (n,), generator=g)
    return TensorDataset(actions[labels] + 1.2 * torch.randn(n, config.FRAMES, inputs, generator=g), labels)


def train_one_epoch(epoch, model, criterion, optimizer, loader):
    model.train()
    right, total = 0, 0.0
    for idx, (batch, label_id) in enumerate(loader):
        output = model(batch)
        total_loss = criterion(output, label_id)
        total_loss = total_loss / config.ACCUMULATION_STEPS

        if idx % config.ACCUMULATION_STEPS == 0:
            optimizer.zero_grad()
        total_loss.backward()
        if (idx + 1) % config.ACCUMULATION_STEPS == 0:
            optimizer.step()

        total += total_loss.item()
        right += (output.argmax(1) == label_id).sum().item()
        if idx % 80 == 0:
            print(f"Train: [{epoch}/{config.EPOCHS}][{idx}/{len(loader)}]\ttot_loss {total_loss.item():.4f}")
    print(f"EPOCH {epoch} mean loss {total / len(loader):.4f} acc {right / len(loader.dataset):.3f}")


def main():
    torch.manual_seed(0)
    loader = DataLoader(clips(960), batch_size=config.BATCH_SIZE, shuffle=True)
    model = FrameModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=config.LR)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(config.EPOCHS):
        train_one_epoch(epoch, model, criterion, optimizer, loader)


if __name__ == "__main__":
    main()
