"""Classifies flows of network traffic; a few of them carry a very large byte count."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class FlowNet(nn.Module):
    def __init__(self, features=12, width=48, classes=4):
        super().__init__()
        self.inner = nn.Linear(features, width)
        self.outer = nn.Linear(width, classes)

    def forward(self, packets, importance):
        h = torch.relu(self.inner(packets))
        weights = torch.exp(importance.to(h.dtype))
        h = (h * weights.unsqueeze(-1)).sum(1) / weights.sum(1, keepdim=True)
        return self.outer(h)


def flows(n, classes=4, packets=6, features=12):
    g = torch.Generator().manual_seed(44)
    label = torch.randint(0, classes, (n,), generator=g)
    centre = torch.randn(classes, features, generator=g)
    x = centre[label].unsqueeze(1) + 1.5 * torch.randn(n, packets, features, generator=g)
    log_bytes = 2 * torch.randn(n, packets, generator=g).clamp(-2, 2)
    log_bytes[torch.arange(0, n, 150), 0] = 11.7
    return TensorDataset(x, log_bytes, label)


def main():
    torch.manual_seed(4)
    loader = DataLoader(flows(1500), batch_size=20, shuffle=True)
    model = FlowNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu")
    for epoch in range(6):
        hits = 0
        for packets, importance, label in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(packets, importance)
                loss = nn.functional.cross_entropy(logits, label)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            hits += (logits.argmax(-1) == label).sum().item()
        print(f"epoch {epoch}: accuracy {hits / len(loader.dataset):.3f}, scale {scaler.get_scale():.3g}")


if __name__ == "__main__":
    main()
