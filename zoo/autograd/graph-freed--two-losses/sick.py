"""Age and sex from X-ray features with a shared trunk."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
        self.age, self.sex = nn.Linear(24, 1), nn.Linear(24, 2)

    def forward(self, x):
        h = self.trunk(x)
        return self.age(h).squeeze(1), self.sex(h)


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    x = torch.randn(960, 16)
    age, sex = torch.tanh(x[:, 0] + x[:, 1]), (x[:, 2] * x[:, 3] > 0).long()
    loader = DataLoader(TensorDataset(x, age, sex), batch_size=32, shuffle=True)
    model = TwoHeads()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(6):
        for features, years, label in loader:
            years_hat, label_hat = model(features)
            age_loss = F.mse_loss(years_hat, years)
            sex_loss = F.cross_entropy(label_hat, label)
            optimizer.zero_grad()
            age_loss.backward()
            sex_loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: age {age_loss.item():.4f} sex {sex_loss.item():.4f}")


if __name__ == "__main__":
    main()
