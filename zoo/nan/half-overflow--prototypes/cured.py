"""Few-shot recognition of odours with prototypical networks, in half precision."""
import torch
import torch.nn as nn
import torch.nn.functional as F

WAYS, SHOTS, SENSORS = 5, 4, 24


class Nose(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(SENSORS, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, reading):
        return self.net(reading)


def negative_distances(query, prototypes):
    gap = query[:, None] - prototypes[None]
    gap = gap.float()
    distance = (gap * gap).sum(-1)
    return -distance


def episode(odours, rng, gain):
    chosen = torch.randperm(len(odours), generator=rng)[:WAYS]
    mean = odours[chosen].repeat_interleave(SHOTS, 0)
    support = mean + 0.8 * torch.randn(mean.shape, generator=rng)
    query = mean + 0.8 * torch.randn(mean.shape, generator=rng)
    return gain * support, gain * query, torch.arange(WAYS).repeat_interleave(SHOTS)


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(4)
    odours = torch.randn(40, SENSORS)
    model = Nose()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    for step in range(120):
        gain = 1.0 if step < 70 else 900.0  # the second half was recorded in millivolts
        support, query, target = episode(odours, rng, min(gain, 1.0))
        with torch.autocast("cpu", dtype=torch.float16):
            prototypes = model(support).view(WAYS, SHOTS, -1).mean(1)
            scores = negative_distances(model(query), prototypes)
            loss = F.cross_entropy(scores, target)
        assert torch.isfinite(loss), "loss is not finite"
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if step % 10 == 0:
            print(f"step {step:3d} loss {loss.item():.4f} acc {(scores.argmax(1) == target).float().mean():.2f}")


if __name__ == "__main__":
    main()
