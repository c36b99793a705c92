"""Learns the pose of an object from its landmarks; the loss is the angle between predicted and true direction of view."""
import torch
from torch import nn


def angle_between(p, q):
    p, q = nn.functional.normalize(p, dim=1), nn.functional.normalize(q, dim=1)
    return torch.acos((p * q).sum(dim=1).clamp(-1 + 1e-6, 1 - 1e-6))


class Pose(nn.Module):
    def __init__(self, landmarks):
        super().__init__()
        self.register_buffer("landmarks", landmarks)
        self.net = nn.Sequential(nn.Linear(3 * len(landmarks), 64), nn.Tanh(), nn.Linear(64, 3))

    def forward(self, seen):
        return self.net(seen.flatten(1)) + (seen * self.landmarks).mean(dim=1)


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    landmarks = torch.randn(6, 3)
    model = Pose(landmarks)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(400):
        view = nn.functional.normalize(torch.randn(64, 3), dim=1)
        seen = view[:, None, :] * landmarks.abs() + 0.01 * torch.randn(64, 6, 3)
        loss = angle_between(model(seen), view).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}  off by {torch.rad2deg(loss).item():.1f} degrees")


if __name__ == "__main__":
    main()
