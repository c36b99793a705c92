"""How many people does a frame show? Attention over the detector's boxes."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MOST = 6


class Frames(Dataset):
    def __init__(self, size, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.frames = []
        for index in range(size):
            count = int(torch.randint(1, MOST + 1, (1,), generator=self.g)) if index != 580 else 0
            kind = torch.randint(0, 3, (count,), generator=self.g)
            boxes = torch.cat([torch.rand(count, 4, generator=self.g), nn.functional.one_hot(kind, 3)], dim=1)
            self.frames.append((boxes, int((kind == 0).sum().clamp(max=3))))

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        boxes, people = self.frames[index]
        mask = torch.ones(MOST, dtype=torch.bool)
        mask[:len(boxes)] = False
        return nn.functional.pad(boxes, (0, 0, 0, MOST - len(boxes))), mask, people


class Counter(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(7, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.query = nn.Parameter(torch.randn(1, 1, dim) * 0.1)
        self.attend = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.head = nn.Linear(dim, 4)

    def forward(self, boxes, mask):
        x = self.embed(boxes)
        x = torch.cat([torch.zeros_like(x[:, :1]), x], dim=1)
        mask = nn.functional.pad(mask, (1, 0), value=False)
        pooled, _ = self.attend(self.query.expand(len(x), -1, -1), x, x, key_padding_mask=mask)
        return self.head(pooled.squeeze(1))


class Experiment:
    def __init__(self):
        self.net = Counter()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=4e-3)
        self.loader = DataLoader(Frames(960, 3), batch_size=32, shuffle=True)

    def run(self, epochs):
        for epoch in range(epochs):
            for boxes, mask, people in self.loader:
                logits = self.net(boxes, mask)
                loss = nn.functional.cross_entropy(logits, people)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(f"epoch={epoch} loss={loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(3)
    torch.set_num_threads(1)
    Experiment().run(5)
