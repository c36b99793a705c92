"""Vector-quantised bottleneck between an encoder and a classifier."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class QuantizedClassifier(nn.Module):
    def __init__(self, inputs=36, dim=8, entries=16, classes=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 48), nn.ReLU(), nn.Linear(48, dim), nn.Tanh())
        self.codebook = nn.Embedding(entries, dim)
        self.classifier = nn.Linear(dim, classes)

    def forward(self, x):
        z = self.encoder(x)
        codes = torch.cdist(z, self.codebook.weight).argmin(dim=1)
        quantized = self.codebook(codes)
        commit = F.mse_loss(quantized, z.detach())
        quantized = z + (quantized - z).detach()
        return self.classifier(quantized), commit


def sample(centres, n):
    y = torch.randint(0, len(centres), (n,))
    return centres[y] + torch.randn(n, centres.shape[1]), y


def main():
    torch.manual_seed(23)
    centres = torch.randn(6, 36)
    model = QuantizedClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(500):
        x, y = sample(centres, 64)
        logits, commit = model(x)
        loss = F.cross_entropy(logits, y) + 0.25 * commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1}: loss {loss.item():.4f}")
    with torch.no_grad():
        x, y = sample(centres, 1000)
        accuracy = (model(x)[0].argmax(1) == y).float().mean().item()
    print(f"accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
