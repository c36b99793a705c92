"""SimSiam: a negative loss that ends near -1, one branch detached, and a kNN monitor."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SimSiam(nn.Module):
    def __init__(self, dim_in=40, dim=64, pred_dim=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(dim_in, dim, bias=False), nn.BatchNorm1d(dim), nn.ReLU(inplace=True),
            nn.Linear(dim, dim, bias=False), nn.BatchNorm1d(dim), nn.ReLU(inplace=True),
            nn.Linear(dim, dim, bias=False), nn.BatchNorm1d(dim, affine=False),
        )
        self.predictor = nn.Sequential(
            nn.Linear(dim, pred_dim, bias=False), nn.BatchNorm1d(pred_dim), nn.ReLU(inplace=True),
            nn.Linear(pred_dim, dim),
        )

    def forward(self, x1, x2):
        z1, z2 = self.encoder(x1), self.encoder(x2)
        p1, p2 = self.predictor(z1), self.predictor(z2)
        return p1, p2, z1.detach(), z2.detach()


def make_data(n, g):
    centers = torch.randn(5, 10, generator=torch.Generator().manual_seed(3)) * 2
    y = torch.randint(0, 5, (n,), generator=g)
    signal = centers[y] + 0.5 * torch.randn(n, 10, generator=g)
    return torch.cat([signal, torch.randn(n, 30, generator=g)], dim=1), y


def augment(x):
    """Views keep the signal and redraw the nuisance dimensions."""
    view = x + 0.2 * torch.randn_like(x)
    view[:, 10:] = torch.randn_like(view[:, 10:])
    return view


@torch.no_grad()
def knn_accuracy(model, bank, bank_y, x, y):
    model.eval()
    a, b = F.normalize(model.encoder(bank), dim=1), F.normalize(model.encoder(x), dim=1)
    votes = bank_y[(b @ a.T).topk(15, dim=1).indices]
    model.train()
    return (votes.mode(dim=1).values == y).float().mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    x, y = make_data(3000, g)
    xv, yv = make_data(600, g)

    model = SimSiam()
    criterion = nn.CosineSimilarity(dim=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    for epoch in range(20):
        total = 0.0
        for idx in torch.randperm(len(x)).split(100):
            p1, p2, z1, z2 = model(augment(x[idx]), augment(x[idx]))
            loss = -(criterion(p1, z2).mean() + criterion(p2, z1).mean()) * 0.5
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 2 == 0 or epoch == 19:
            with torch.no_grad():
                std = F.normalize(z1, dim=1).std(0).mean()
            print(f"Epoch: [{epoch}]  Loss {total / 30:.4f}  output std {std:.4f}  "
                  f"kNN acc {knn_accuracy(model, x, y, xv, yv):.3f}")


if __name__ == "__main__":
    main()
