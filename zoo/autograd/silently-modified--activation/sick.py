"""Sparse autoencoder; small activations are zeroed and their share is reported."""
import torch
from torch import nn


class SparseCoder:
    def __init__(self, n_in=30, code=60, floor=0.3):
        self.encoder, self.decoder = nn.Linear(n_in, code), nn.Linear(code, n_in, bias=False)
        self.parameters = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=3e-3)
        self.floor = floor

    def step(self, x):
        hidden = torch.sigmoid(self.encoder(x))
        recon = self.decoder(hidden)
        loss = (recon - x).pow(2).mean() + 1e-3 * hidden.sum(1).mean()
        hidden.data[hidden.data < self.floor] = 0
        active = (hidden > 0).float().mean().item()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), active


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    atoms = torch.randn(40, 30)
    coder = SparseCoder()
    for step in range(250):
        code = torch.rand(64, 40) * (torch.rand(64, 40) < 0.1)
        loss, active = coder.step(code @ atoms)
        if step % 50 == 0:
            print(f"step {step} loss {loss:.4f} active {active:.3f}")


if __name__ == "__main__":
    main()
