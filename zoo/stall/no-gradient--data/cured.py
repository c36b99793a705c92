import torch
import torch.nn as nn
import torch.nn.functional as F


class AutoEncoder(nn.Module):
    def __init__(self, inputs=64, code=4):
        super().__init__()
        self.enc1 = nn.Linear(inputs, 32)
        self.enc2 = nn.Linear(32, code)
        self.dec1 = nn.Linear(code, 32)
        self.dec2 = nn.Linear(32, inputs)

    def encode(self, x):
        return self.enc2(F.elu(self.enc1(x)))

    def decode(self, z):
        return self.dec2(F.elu(self.dec1(z)))

    def forward(self, x):
        z = self.encode(x)
        recon = self.decode(z)
        return recon, z


def sensor_readings(n):
    """64 correlated channels driven by 4 sources, over independent noise."""
    mixing = torch.randn(4, 64)
    return torch.randn(n, 4) @ mixing * 0.6 + 0.8 * torch.randn(n, 64)


def main():
    torch.manual_seed(15)
    data = sensor_readings(2400)
    train, test = data[:2000], data[2000:]
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    print("parameters:", sum(p.numel() for p in model.parameters()))

    for epoch in range(12):
        total = 0.0
        for x in train[torch.randperm(len(train))].split(100):
            recon, z = model(x)
            loss = F.mse_loss(recon, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1:2d} loss {total / len(train):.4f}")

    with torch.no_grad():
        error = F.mse_loss(model(test)[0], test)
        explained = 1 - error / test.var()
    print(f"test mse {error.item():.4f}, r2 {explained.item():.3f}")


if __name__ == "__main__":
    main()
