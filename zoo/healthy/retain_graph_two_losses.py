"""Two losses of one forward are back-propagated one after the other with retain_graph; one step follows."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Denoise(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 8))
        self.decode = nn.Linear(8, 20)
        self.classify = nn.Linear(8, 3)

    def forward(self, x):
        z = self.encode(x)
        return self.decode(z), self.classify(z)


def gradient_norm(model):
    return sum(p.grad.pow(2).sum() for p in model.encode.parameters()).sqrt().item()


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    patterns = torch.randn(3, 20)
    model = Denoise()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(160):
        y = torch.randint(0, 3, (32,))
        clean = patterns[y] * (0.5 + torch.rand(32, 1))
        recon, logits = model(clean + 0.3 * torch.randn(32, 20))
        optimizer.zero_grad()
        reconstruction = F.mse_loss(recon, clean)
        reconstruction.backward(retain_graph=True)
        first = gradient_norm(model)
        classification = F.cross_entropy(logits, y)
        classification.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: {reconstruction.item():.4f} {classification.item():.4f} norms {first:.3f} {gradient_norm(model):.3f}")


if __name__ == "__main__":
    main()
