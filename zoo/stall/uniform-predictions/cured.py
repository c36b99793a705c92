"""Train a small image/text dual encoder on twelve kinds of animal behaviour."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

NUM_CLASSES = 12


class VisionTower(nn.Module):
    def __init__(self, width=24, dim=64):
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=4, stride=4)
        self.norm = nn.LayerNorm(width * 16)
        self.proj = nn.Linear(width * 16, dim)

    def forward(self, x):
        x = F.gelu(self.patches(x)).flatten(1)
        return self.proj(self.norm(x))


class TextTower(nn.Module):
    def __init__(self, vocab=200, width=24, dim=64):
        super().__init__()
        self.tokens = nn.EmbeddingBag(vocab, width, mode="mean")
        self.proj = nn.Linear(width, dim)

    def forward(self, prompts):
        return self.proj(self.tokens(prompts))


class DualEncoder(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.visual = VisionTower()
        self.text = TextTower()
        self.temperature = temperature

    def forward(self, images, prompts):
        image = F.normalize(self.visual(images), dim=-1)
        text = F.normalize(self.text(prompts), dim=-1)
        return image @ text.t() / self.temperature


def make_data(n, seed):
    templates = torch.randn(NUM_CLASSES, 3, 16, 16, generator=torch.Generator().manual_seed(3))
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, NUM_CLASSES, (n,), generator=g)
    images = 0.5 * templates[labels] + torch.randn(n, 3, 16, 16, generator=g)
    return TensorDataset(images, labels)


@torch.no_grad()
def validate(model, loader, prompts):
    model.eval()
    hits = total = 0
    for images, labels in loader:
        hits += (model(images, prompts).argmax(1) == labels).sum().item()
        total += len(labels)
    model.train()
    return hits / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulation-steps", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--temperature", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(0)
    train_loader = DataLoader(make_data(2048, 1), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(make_data(480, 2), batch_size=120)
    prompts = torch.randint(0, 200, (NUM_CLASSES, 6))

    model = DualEncoder(temperature=args.temperature)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        for idx, (images, labels) in enumerate(train_loader):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                output = model(images, prompts)
            total_loss = criterion(output, labels) / args.accumulation_steps
            total_loss.backward()
            if (idx + 1) % args.accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
            if idx % 50 == 0:
                print(f"Train: [{epoch}/{args.epochs}][{idx}/{len(train_loader)}]\ttot_loss {total_loss.item():.4f}")
        print(f"epoch {epoch} acc {validate(model, val_loader, prompts):.4f}")


if __name__ == "__main__":
    main()
