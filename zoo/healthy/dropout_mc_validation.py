"""MC dropout: at validation only the Dropout layers are put back into train mode, to sample the uncertainty."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Regressor(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(p),
            nn.Linear(64, 64), nn.ReLU(), nn.Dropout(p),
            nn.Linear(64, 1),
        )

    def forward(self, x):
        return self.net(x)


def enable_dropout(model):
    for m in model.modules():
        if m.__class__.__name__.startswith("Dropout"):
            m.train()


@torch.no_grad()
def mc_predict(model, x, passes=20):
    model.eval()
    enable_dropout(model)
    samples = torch.stack([model(x) for _ in range(passes)])
    return samples.mean(0), samples.std(0)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(12)
    x = torch.rand(1500, 1) * 4 - 2
    y = torch.sin(3 * x) + 0.1 * torch.randn_like(x)
    x_val = torch.rand(300, 1) * 4 - 2
    y_val = torch.sin(3 * x_val) + 0.1 * torch.randn_like(x_val)
    far = torch.full((50, 1), 4.0)

    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(25):
        model.train()
        losses = []
        for idx in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 3 == 0 or epoch == 24:
            mean, std = mc_predict(model, x_val)
            _, far_std = mc_predict(model, far)
            print(f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}  val mse {F.mse_loss(mean, y_val):.4f}  "
                  f"sigma in {std.mean():.3f} out {far_std.mean():.3f}")


if __name__ == "__main__":
    main()
