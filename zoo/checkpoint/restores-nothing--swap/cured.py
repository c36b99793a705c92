"""Counts the voices that speak at once from the loudness of 24 bands; the answers are those of smoothed weights."""
import torch
from torch import nn

BANDS, VOICES, STEPS, BATCH = 24, 6, 600, 50


class Smoothed:
    """A slow average of the weights, which stands in for them while the model is scored."""

    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.average = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    @torch.no_grad()
    def update(self):
        for name, tensor in self.model.state_dict().items():
            self.average[name].mul_(self.decay).add_(tensor, alpha=1 - self.decay)

    def __enter__(self):
        self.kept = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)

    def __exit__(self, *problem):
        self.model.load_state_dict(self.kept)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(BANDS, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh())
        self.answer = nn.Linear(96, VOICES)

    def forward(self, loudness):
        return self.answer(self.inner(loudness))


def recordings(count, spectra, generator):
    speaking = torch.rand(count, len(spectra), generator=generator) < 0.4
    speaking[speaking.sum(1) >= VOICES] = False
    loudness = (speaking.float() @ spectra).log1p() + 0.05 * torch.randn(count, BANDS, generator=generator)
    return loudness, speaking.sum(1)


def scores(model, loudness, voices):
    model.eval()
    with torch.no_grad():
        answers = model(loudness)
    model.train()
    return nn.functional.cross_entropy(answers, voices).item(), (answers.argmax(1) == voices).float().mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(6)
    spectra = 3 * torch.rand(7, BANDS, generator=generator) ** 3
    loudness, voices = recordings(4000, spectra, generator)
    held_out = recordings(1000, spectra, generator)
    model = Counter()
    smoothed = Smoothed(model, decay=0.995)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        rows = torch.randint(0, len(loudness), (BATCH,), generator=generator)
        loss = nn.functional.cross_entropy(model(loudness[rows]), voices[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smoothed.update()
        if (step + 1) % 20 == 0:
            with smoothed:
                held_out_loss, accuracy = scores(model, *held_out)
            if (step + 1) % 100 == 0:
                print(f"step {step + 1}: loss {loss.item():.4f}, held out {held_out_loss:.4f}, accuracy {accuracy:.3f}")
    held_out_loss, accuracy = scores(model, *held_out)
    print(f"last weights: held out {held_out_loss:.4f}, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
