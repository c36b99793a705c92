"""State dicts everywhere: the best one as a deep copy, a swap with averaged weights and back, norms in each step, one reload in place."""
import copy

import torch
from torch import nn

FEATURES, STEPS, BATCH = 16, 700, 50


class Average:
    def __init__(self, model, decay=0.98):
        self.model, self.decay = model, decay
        self.state = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    @torch.no_grad()
    def update(self):
        for name, tensor in self.model.state_dict().items():
            if tensor.is_floating_point():
                self.state[name].lerp_(tensor, 1 - self.decay)
            else:
                self.state[name].copy_(tensor)

    def __enter__(self):
        self.live = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict(self.state)

    def __exit__(self, *problem):
        self.model.load_state_dict(self.live)


def rivers(count, slope, bend, generator):
    """The height of a river from rain, snow and temperature of the last days."""
    weather = torch.randn(count, FEATURES, generator=generator)
    height = weather @ slope + torch.sin(2 * weather @ bend)
    return weather, height[:, None] + 0.3 * torch.randn(count, 1, generator=generator)


def score(model, weather, height):
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(weather), height).item()
    model.train()
    return error


def main():
    torch.set_num_threads(1)
    torch.manual_seed(71)
    generator = torch.Generator().manual_seed(72)
    slope, bend = 0.5 * torch.randn(FEATURES, generator=generator), 0.3 * torch.randn(FEATURES, generator=generator)
    weather, height = rivers(600, slope, bend, generator)
    valid = rivers(500, slope, bend, generator)
    model = nn.Sequential(nn.Linear(FEATURES, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 1))
    average = Average(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    best, best_error = None, float("inf")
    for step in range(1, STEPS + 1):
        rows = torch.randint(0, len(weather), (BATCH,), generator=generator)
        loss = nn.functional.mse_loss(model(weather[rows]), height[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
        norms = {name: tensor.float().norm().item() for name, tensor in model.state_dict().items()}
        if step == 100:
            model.load_state_dict(model.state_dict())
        if step % 25 == 0:
            live_error = score(model, *valid)
            with average:
                error = score(model, *valid)
                if error < best_error:
                    best, best_error = copy.deepcopy(model.state_dict()), error
            if step % 100 == 0:
                print(
                    f"step {step}: loss {loss.item():.4f}, validation {live_error:.4f}, averaged {error:.4f}, "
                    f"first norm {norms['0.weight']:.3f}, last norm {norms['5.weight']:.3f}"
                )
    model.load_state_dict(best)
    print(f"best {best_error:.4f}, restored {score(model, *valid):.4f}")


if __name__ == "__main__":
    main()
