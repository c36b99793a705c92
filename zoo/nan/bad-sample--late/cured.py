"""Demand of a heating network per hour from a CSV file; dropout, shuffling, one long epoch."""
import csv
import math
import random
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


def export(path, hours=9000):
    rng = random.Random(6)
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        for hour in range(hours):
            temperature, wind = rng.gauss(0, 1), rng.gauss(0, 1)
            phase = 2 * math.pi * (hour % 24) / 24
            demand = 1.5 - temperature + 0.4 * wind * math.sin(phase) + 0.3 * math.cos(phase) + rng.gauss(0, 0.1)
            cell = "" if hour == 7777 else f"{demand:.4f}"
            writer.writerow([f"{temperature:.3f}", f"{wind:.3f}", f"{math.sin(phase):.3f}", f"{math.cos(phase):.3f}", cell])


class Hours(Dataset):
    def __init__(self, path):
        rows = []
        with open(path, newline="") as source:
            for line in csv.reader(source):
                if all(line):
                    rows.append([float(cell) for cell in line])
        table = torch.tensor(rows)
        self.x, self.y = table[:, :-1], table[:, -1:]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, item):
        return self.x[item], self.y[item]


def main(folder):
    export(folder / "heating.csv")
    torch.manual_seed(15)
    torch.set_num_threads(1)
    train_loader = DataLoader(Hours(folder / "heating.csv"), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    average = None
    for step, (features, demand) in enumerate(train_loader):
        loss = F.mse_loss(model(features), demand)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = loss.item() if average is None else 0.98 * average + 0.02 * loss.item()
        if step % 50 == 0:
            print(f"step {step:3d} loss {loss.item():.4f} average {average:.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
