"""bfloat16 autocast on CPU without a GradScaler, which bfloat16 does not need."""
import torch
import torch.nn as nn


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv1d(3, 16, 5, padding=2), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 24, 5, padding=2, stride=2), nn.BatchNorm1d(24), nn.ReLU(), nn.AdaptiveAvgPool1d(1),
        )
        self.classifier = nn.Linear(24, 3)

    def forward(self, x):
        return self.classifier(self.block(x).flatten(1))


def signals(n, g):
    """Three-axis accelerometer traces of walking, running and shaking: the frequency differs."""
    y = torch.randint(0, 3, (n,), generator=g)
    t = torch.arange(32).float()
    freq = torch.tensor([0.3, 0.7, 1.5])[y][:, None, None]
    phase = torch.rand(n, 3, 1, generator=g) * 6.28
    return torch.sin(freq * t + phase) + 0.6 * torch.randn(n, 3, 32, generator=g), y


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    x, y = signals(1200, g)
    xv, yv = signals(300, g)
    model = ConvNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for epoch in range(6):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(40):
            with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            acc = (model(xv).argmax(1) == yv).float().mean().item()
        print(f"epoch {epoch}  loss {total / 30:.4f}  val acc {acc:.3f}")


if __name__ == "__main__":
    main()
