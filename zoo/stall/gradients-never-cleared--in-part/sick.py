"""Rates the ripeness of fruit in five grades from a reflectance spectrum."""
import torch
from torch import nn

CHANNELS, GRADES, EPOCHS, BATCH = 64, 5, 12, 40


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 12, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv1d(12, 24, 5, stride=2, padding=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(24 * CHANNELS // 4, 32), nn.ReLU(),
        )

    def forward(self, spectrum):
        return self.layers(spectrum.unsqueeze(1))


class Grader:
    def __init__(self):
        self.encoder = Encoder()
        self.head = nn.Linear(32, GRADES)
        self.optimizer = torch.optim.SGD([*self.encoder.parameters(), *self.head.parameters()], lr=0.05)
        self.criterion = nn.CrossEntropyLoss()

    def grade(self, spectrum):
        return self.head(self.encoder(spectrum))

    def prepare(self):
        self.encoder.train()
        self.head.train()
        self.head.zero_grad()

    def learn(self, spectrum, grade):
        self.prepare()
        loss = self.criterion(self.grade(spectrum), grade)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, spectrum, grade):
        self.encoder.eval()
        self.head.eval()
        return (self.grade(spectrum).argmax(1) == grade).float().mean().item()


def spectra(count, generator):
    grade = torch.randint(0, GRADES, (count,), generator=generator)
    position = torch.linspace(0, 1, CHANNELS)
    centre = 0.25 + 0.11 * grade[:, None] + 0.03 * torch.randn(count, 1, generator=generator)
    dip = -torch.exp(-((position - centre) / 0.06) ** 2)
    slope = torch.randn(count, 1, generator=generator) * (position - 0.5)
    return dip + slope + 0.15 * torch.randn(count, CHANNELS, generator=generator), grade


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(4)
    spectrum, grade = spectra(2000, generator)
    new_spectrum, new_grade = spectra(800, generator)
    grader = Grader()
    for epoch in range(EPOCHS):
        order = torch.randperm(len(grade), generator=generator)
        losses = [grader.learn(spectrum[rows], grade[rows]) for rows in order.split(BATCH)]
        print(f"epoch {epoch:2d}: loss {sum(losses) / len(losses):.4f}, accuracy {grader.accuracy(new_spectrum, new_grade):.3f}")


if __name__ == "__main__":
    main()
