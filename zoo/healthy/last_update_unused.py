"""An equivariant graph network: every layer updates features and coordinates, and nobody reads the last coordinates."""
import torch
from torch import nn

ATOMS, KINDS, WIDTH, LAYERS = 6, 4, 24, 3


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width + 1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.pull = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
        self.update = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, features, place):
        apart = place[:, :, None] - place[:, None]
        squared = apart.square().sum(-1, keepdim=True)
        own = features[:, :, None].expand(-1, -1, ATOMS, -1)
        message = self.message(torch.cat([own, own.transpose(1, 2), squared], -1))
        place = place + (apart * self.pull(message)).mean(2)
        features = features + self.update(torch.cat([features, message.sum(2)], -1))
        return features, place


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind = nn.Embedding(KINDS, WIDTH)
        self.layers = nn.ModuleList(Layer(WIDTH) for _ in range(LAYERS))
        self.energy = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))

    def forward(self, kinds, place):
        features = self.kind(kinds)
        for layer in self.layers:
            features, place = layer(features, place)
        return self.energy(features).sum((1, 2))


def molecules(count, charges, generator):
    kinds = torch.randint(0, KINDS, (count, ATOMS), generator=generator)
    place = torch.randn(count, ATOMS, 3, generator=generator)
    charge = charges[kinds]
    distance = (place[:, :, None] - place[:, None]).square().sum(-1)
    pairs = charge[:, :, None] * charge[:, None] * torch.exp(-distance / 3)
    energy = pairs.triu(1).sum((1, 2))
    return kinds, place, energy


def main():
    torch.set_num_threads(1)
    torch.manual_seed(51)
    generator = torch.Generator().manual_seed(52)
    charges = torch.randn(KINDS, generator=generator)
    kinds, place, energy = molecules(2000, charges, generator)
    test_kinds, test_place, test_energy = molecules(300, charges, generator)
    scale = energy.std()
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        total = error = 0.0
        for rows in torch.randperm(len(kinds), generator=generator).split(40):
            predicted = model(kinds[rows], place[rows])
            loss = nn.functional.mse_loss(predicted, energy[rows] / scale)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            error += (predicted.detach() * scale - energy[rows]).abs().sum().item()
        with torch.no_grad():
            test = (model(test_kinds, test_place) * scale - test_energy).abs().mean().item()
        print(f"epoch {epoch}: loss {total / len(kinds):.4f}, mean error {error / len(kinds):.4f}, on new molecules {test:.4f}")


if __name__ == "__main__":
    main()
