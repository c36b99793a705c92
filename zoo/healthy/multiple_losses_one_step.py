"""Autoencoder with three losses, three backward calls through one graph, and a single optimizer step."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SparseAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 12), nn.Softplus())
        self.dec = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32))
        self.cls = nn.Linear(12, 4)

    def forward(self, x):
        code = self.enc(x)
        return code, self.dec(code), self.cls(code)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(9)
    mix = torch.randn(4, 32)
    label = torch.randint(0, 4, (2048,))
    x = mix[label] + torch.randn(2048, 6) @ torch.randn(6, 32) * 0.3 + 0.1 * torch.randn(2048, 32)

    model = SparseAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(14):
        sums = [0.0, 0.0, 0.0]
        for idx in torch.randperm(2048).split(64):
            optimizer.zero_grad()
            code, recon, logits = model(x[idx])
            recon_loss = F.mse_loss(recon, x[idx])
            sparse_loss = 0.01 * code.abs().mean()
            class_loss = 0.3 * F.cross_entropy(logits, label[idx])

            recon_loss.backward(retain_graph=True)
            sparse_loss.backward(retain_graph=True)
            class_loss.backward()
            optimizer.step()
            for k, value in enumerate((recon_loss, sparse_loss, class_loss)):
                sums[k] += value.item() / 32
        recon, sparse, cls = sums
        print(f"epoch {epoch:2d} loss {sum(sums):.4f} = recon {recon:.4f} + sparse {sparse:.4f} + class {cls:.4f}")


if __name__ == "__main__":
    main()
