"""Segmentation of stripes with gated convolutions; Trainer class."""
import torch
import torch.nn as nn


class GatedConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, 3, padding=1)
        self.gate = nn.Sigmoid()
        self.clip = nn.ReLU()

    def forward(self, x):
        return self.clip(self.gate(self.conv(x)))


class Trainer:
    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.net = nn.Sequential(GatedConv(1, 8), GatedConv(8, 8), nn.Conv2d(8, 1, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.criterion = nn.BCEWithLogitsLoss()

    def batch(self, n=8, side=16):
        phase = torch.rand(n, 1, 1) * 6.28
        stripes = (torch.sin(torch.arange(side).float()[None, :, None] * 0.8 + phase) > 0).float().expand(n, side, side)
        return (stripes + 0.4 * torch.randn(n, side, side)).unsqueeze(1), stripes.unsqueeze(1)

    def train(self, steps):
        for step in range(steps):
            image, mask = self.batch()
            loss = self.criterion(self.net(image), mask)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 25 == 0:
                print(f"{step:4d} {loss.item():.4f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    Trainer().train(150)
