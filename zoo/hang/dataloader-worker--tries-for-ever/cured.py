"""Learn to tell which of two notes of a recording is higher."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, count=800, notes=20, apart=0.5):
        chance = torch.Generator().manual_seed(1)
        self.tunes = torch.randn(count, notes, generator=chance)
        self.tunes[611] = 0.01 * self.tunes[611]
        self.apart = apart

    def __len__(self):
        return len(self.tunes)

    def __getitem__(self, number):
        tune = self.tunes[number]
        first, second = torch.randint(len(tune), (2,)).tolist()
        for _ in range(100):
            if abs(float(tune[first] - tune[second])) >= self.apart:
                break
            first, second = torch.randint(len(tune), (2,)).tolist()
        marks = torch.zeros(2, len(tune))
        marks[0, first], marks[1, second] = 1.0, 1.0
        return (marks * tune).flatten(), (tune[first] > tune[second]).float()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Pairs(), batch_size=20, num_workers=2)
    net = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
    adam = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(3):
        for tunes, higher in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(net(tunes), higher)
            adam.zero_grad()
            loss.backward()
            adam.step()
        print(f"epoch {epoch}: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
