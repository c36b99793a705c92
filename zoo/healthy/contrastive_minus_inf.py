"""SimCLR: the similarity of each view with itself is set to minus infinity before the cross entropy."""
import torch
from torch import nn
import torch.nn.functional as F

PLANTS, SENSORS = 10, 32


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(SENSORS, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 24))

    def forward(self, x):
        return self.projector(self.trunk(x))


def nt_xent(first, second, temperature=0.2):
    z = F.normalize(torch.cat([first, second]), dim=1)
    similarity = z @ z.T / temperature
    similarity.fill_diagonal_(float("-inf"))
    half = len(first)
    partner = torch.cat([torch.arange(half, 2 * half), torch.arange(half)])
    return F.cross_entropy(similarity, partner)


def disturbed(x):
    """Another reading of the same object: a different gain, some sensors that fail, noise."""
    gain = 0.7 + 0.6 * torch.rand(len(x), 1)
    working = (torch.rand_like(x) > 0.25).float()
    return gain * x * working + 0.2 * torch.randn_like(x)


def greenhouse(count, typical, generator):
    kinds = torch.randint(0, PLANTS, (count,), generator=generator)
    return typical[kinds] + 1.5 * torch.randn(count, SENSORS, generator=generator), kinds


@torch.no_grad()
def partner_found(model, x):
    """How often a reading lies nearest to the other reading of the same object, of all."""
    first, second = F.normalize(model(disturbed(x)), dim=1), F.normalize(model(disturbed(x)), dim=1)
    return ((first @ second.T).argmax(1) == torch.arange(len(x))).float().mean().item()


@torch.no_grad()
def neighbours_agree(model, x, kinds):
    features = F.normalize(model.trunk(x), dim=1)
    similarity = features @ features.T
    similarity.fill_diagonal_(float("-inf"))
    return (kinds[similarity.argmax(1)] == kinds).float().mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(41)
    generator = torch.Generator().manual_seed(42)
    typical = torch.randn(PLANTS, SENSORS, generator=generator)
    x, _ = greenhouse(4000, typical, generator)
    x_new, kinds = greenhouse(400, typical, generator)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(500):
        rows = torch.randint(0, len(x), (64,), generator=generator)
        loss = nt_xent(model(disturbed(x[rows])), model(disturbed(x[rows])))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == 499:
            print(
                f"step {step:3d} loss {loss.item():.4f} partner found {partner_found(model, x_new):.3f} "
                f"nearest neighbour of the same kind {neighbours_agree(model, x_new, kinds):.3f}"
            )


if __name__ == "__main__":
    main()
