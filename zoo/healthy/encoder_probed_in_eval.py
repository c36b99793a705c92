"""Now and then the encoder is looked at on its own, in eval mode and with a graph; it is trained in the whole model, in train mode."""
import torch
from torch import nn

FRAMES, BANDS, SINGERS, CHOIRS, STEPS = 20, 12, 8, 3, 500


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(BANDS, 32, 3, padding=1), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2),
            nn.Conv1d(32, 32, 3, padding=1), nn.BatchNorm1d(32), nn.ReLU(),
        )

    def forward(self, x):
        return self.layers(x).mean(2)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(32, SINGERS)

    def forward(self, x):
        return self.head(self.dropout(self.encoder(x)))


def linear_probe(encoder, x, choirs):
    """How well a linear map tells the choir of a singer from the features; half of the samples fit it, half judge it."""
    encoder.eval()
    features = encoder(x)
    features = torch.cat([features, torch.ones(len(x), 1)], 1)
    wanted = nn.functional.one_hot(choirs, CHOIRS).float()
    half = len(x) // 2
    gram = features[:half].T @ features[:half] + 1e-2 * torch.eye(features.shape[1])
    weights = torch.linalg.solve(gram, features[:half].T @ wanted[:half])
    answers = (features[half:] @ weights).argmax(1)
    encoder.train()
    return (answers == choirs[half:]).float().mean().item()


def songs(count, voices, melodies, generator):
    singers = torch.randint(0, SINGERS, (count,), generator=generator)
    sung = torch.randint(0, len(melodies), (count,), generator=generator)
    melody = melodies[sung] * torch.sign(torch.randn(count, 1, FRAMES, generator=generator))
    noise = torch.randn(count, BANDS, FRAMES, generator=generator)
    return voices[singers, :, None] + melody + noise, singers


def main():
    torch.set_num_threads(1)
    torch.manual_seed(81)
    generator = torch.Generator().manual_seed(82)
    voices = 0.25 * torch.randn(SINGERS, BANDS, generator=generator)
    melodies = torch.randn(5, BANDS, 1, generator=generator)
    x, singers = songs(3000, voices, melodies, generator)
    x_new, new_singers = songs(400, voices, melodies, generator)
    choirs = new_singers % CHOIRS
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(STEPS):
        if step % 25 == 0:
            probed = linear_probe(model.encoder, x_new, choirs)
        rows = torch.randint(0, len(x), (48,), generator=generator)
        loss = nn.functional.cross_entropy(model(x[rows]), singers[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 or step == STEPS - 1:
            model.eval()
            with torch.no_grad():
                accuracy = (model(x_new).argmax(1) == new_singers).float().mean().item()
            model.train()
            print(f"step {step}: loss {loss.item():.4f}, singer {accuracy:.3f}, choir from the features {probed:.3f}")


if __name__ == "__main__":
    main()
