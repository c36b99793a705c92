"""Reading a sample changes the data set: it is normalised where it lies the first time, counted, and its contour is cached."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH, SHAPES, EPOCHS = 64, 5, 8


class Outlines(Dataset):
    def __init__(self, radius, shapes):
        self.radius, self.shapes = radius, shapes
        self.ready = np.zeros(len(shapes), dtype=bool)
        self.visits = np.zeros(len(shapes), dtype=np.int64)
        self.spectra = np.full((len(shapes), LENGTH // 2), np.nan, dtype=np.float32)
        self.bends = {}

    def __len__(self):
        return len(self.shapes)

    def __getitem__(self, i):
        self.visits[i] += 1
        radius = torch.from_numpy(self.radius[i])
        if not self.ready[i]:
            radius -= radius.mean()
            radius /= radius.std()
            self.spectra[i] = np.abs(np.fft.rfft(self.radius[i]))[1:] / LENGTH**0.5
            self.ready[i] = True
        if i not in self.bends:
            self.bends[i] = radius.roll(1) - 2 * radius + radius.roll(-1)
        return torch.stack([radius, self.bends[i]]), torch.from_numpy(self.spectra[i]), int(self.shapes[i])


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.outline = nn.Sequential(
            nn.Conv1d(2, 12, 5, padding=2, padding_mode="circular"), nn.ReLU(), nn.AvgPool1d(4),
            nn.Conv1d(12, 16, 5, padding=2, padding_mode="circular"), nn.ReLU(), nn.Flatten(),
        )
        self.spectrum = nn.Linear(LENGTH // 2, 16)
        self.shape = nn.Linear(16 * LENGTH // 4 + 16, SHAPES)

    def forward(self, outline, spectrum):
        return self.shape(torch.cat([self.outline(outline), torch.relu(self.spectrum(spectrum))], 1))


def stones(count, rng):
    """Distances from the middle to the rim, in pixels, of stones with three to seven corners."""
    shapes = rng.integers(0, SHAPES, count)
    angle = np.linspace(0, 2 * np.pi, LENGTH, endpoint=False)
    corners = np.cos((3 + shapes[:, None]) * (angle + rng.uniform(0, 2 * np.pi, (count, 1))))
    tilt = 2 * np.cos(angle + rng.uniform(0, 2 * np.pi, (count, 1)))
    size = rng.uniform(40, 200, (count, 1))
    return (size * (1 + 0.1 * (corners + tilt + rng.standard_normal((count, LENGTH))))).astype(np.float32), shapes


def main():
    torch.set_num_threads(1)
    torch.manual_seed(61)
    rng = np.random.default_rng(62)
    train, test = Outlines(*stones(1600, rng)), Outlines(*stones(400, rng))
    train_loader = DataLoader(train, batch_size=40, shuffle=True)
    test_loader = DataLoader(test, batch_size=100)
    model = Recogniser()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for outline, spectrum, shape in train_loader:
            loss = nn.functional.cross_entropy(model(outline, spectrum), shape)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            right = sum((model(outline, spectrum).argmax(1) == shape).sum().item() for outline, spectrum, shape in test_loader)
        print(
            f"epoch {epoch}: loss {total / len(train_loader):.4f}, accuracy {right / len(test):.3f}, "
            f"visits {train.visits.min()} to {train.visits.max()}, prepared {train.ready.mean():.2f}, cached {len(train.bends)}"
        )


if __name__ == "__main__":
    main()
