"""VQ autoencoder: straight-through estimator with detach, codebook learned by EMA in buffers without any gradient."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizerEMA(nn.Module):
    def __init__(self, codes=32, dim=4, decay=0.95, beta=0.25):
        super().__init__()
        self.decay, self.beta = decay, beta
        self.register_buffer("embedding", torch.randn(codes, dim) * 0.5)
        self.register_buffer("cluster_size", torch.ones(codes))
        self.register_buffer("ema_w", self.embedding.clone())

    def forward(self, z):
        index = torch.cdist(z.detach(), self.embedding).argmin(1)
        quantized = self.embedding[index]
        if self.training:
            with torch.no_grad():
                onehot = F.one_hot(index, len(self.embedding)).float()
                self.cluster_size.lerp_(onehot.sum(0), 1 - self.decay)
                self.ema_w.lerp_(onehot.T @ z, 1 - self.decay)
                self.embedding.copy_(self.ema_w / self.cluster_size.clamp(min=1e-3)[:, None])
        commitment = self.beta * F.mse_loss(z, quantized.detach())
        return z + (quantized - z).detach(), commitment, index


class VQAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 4))
        self.vq = VectorQuantizerEMA()
        self.decoder = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 16))

    def forward(self, x):
        q, commitment, index = self.vq(self.encoder(x))
        return self.decoder(q), commitment, index


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    prototypes = torch.randn(20, 16)
    x = prototypes[torch.randint(0, 20, (3000,))] + 0.1 * torch.randn(3000, 16)
    model = VQAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(600):
        model.train()
        recon, commitment, index = model(batch := x[torch.randint(0, 3000, (64,))])
        recon_error = F.mse_loss(recon, batch)
        loss = recon_error + commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0 or step == 599:
            print(f"{step} recon_error: {recon_error.item():.4f} loss: {loss.item():.4f} "
                  f"codes in use: {len(index.unique())}")


if __name__ == "__main__":
    main()
