"""A head that is used in validation only, solved in closed form there: in the optimizer, never a gradient."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 16))
        self.decoder = nn.Linear(16, 24)
        self.probe = nn.Linear(16, 4)  # read-out of the classes, for monitoring

    def forward(self, x):
        return self.decoder(self.encoder(x))


@torch.no_grad()
def fit_probe(model, x, y):
    """Ridge regression from codes to one-hot classes."""
    h = F.pad(model.encoder(x), (0, 1), value=1.0)
    w = torch.linalg.solve(h.T @ h + 1e-3 * torch.eye(17), h.T @ F.one_hot(y, 4).float())
    model.probe.weight.copy_(w[:-1].T)
    model.probe.bias.copy_(w[-1])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    y = torch.randint(0, 4, (3000,))
    x = torch.randn(4, 24)[y] + torch.randn(3000, 5) @ torch.randn(5, 24) * 0.4 + 0.2 * torch.randn(3000, 24)

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        model.train()
        epoch_loss = 0.0
        for idx in torch.randperm(2000).split(50):
            noisy = x[idx] + 0.3 * torch.randn(len(idx), 24)
            loss = F.mse_loss(model(noisy), x[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item() / 40
        model.eval()
        fit_probe(model, x[2000:2500], y[2000:2500])
        with torch.no_grad():
            acc = (model.probe(model.encoder(x[2500:])).argmax(1) == y[2500:]).float().mean()
        print(f"epoch {epoch:2d}: denoising loss {epoch_loss:.4f}, probe accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
