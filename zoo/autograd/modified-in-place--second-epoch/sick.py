"""Centre loss on top of cross entropy; the centres rest during the first epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CenterLoss(nn.Module):
    def __init__(self, classes, dim, rate=0.3):
        super().__init__()
        self.register_buffer("centres", torch.zeros(classes, dim))
        self.rate = rate

    def forward(self, features, labels):
        similarity = features @ self.centres.t()
        return (features.pow(2).sum(1) - 2 * similarity.gather(1, labels[:, None]).squeeze(1)).mean()

    @torch.no_grad()
    def update(self, features, labels):
        for c in labels.unique():
            self.centres[c] += self.rate * (features[labels == c].detach().mean(0) - self.centres[c])


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    means = torch.randn(5, 12)
    y = torch.randint(0, 5, (1000,))
    loader = DataLoader(TensorDataset(means[y] + 0.5 * torch.randn(1000, 12), y), batch_size=25, shuffle=True)
    body, head = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8)), nn.Linear(8, 5)
    center_loss = CenterLoss(5, 8)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=3e-3)
    for epoch in range(5):
        for x, y in loader:
            features = body(x)
            loss = nn.functional.cross_entropy(head(features), y) + 0.01 * center_loss(features, y)
            if epoch > 0:
                center_loss.update(features, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
