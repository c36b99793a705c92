"""Switch-style mixture of experts: in a given batch some experts see no token and have no gradient at all."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SwitchLayer(nn.Module):
    def __init__(self, dim=16, experts=6):
        super().__init__()
        self.router = nn.Linear(dim, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, dim)) for _ in range(experts))

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        weight, choice = gates.max(-1)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            rows = (choice == k).nonzero().squeeze(1)
            if len(rows):
                out = out.index_add(0, rows, expert(x[rows]) * weight[rows, None])
        share = F.one_hot(choice, len(self.experts)).float().mean(0)
        balance = len(self.experts) * (share * gates.mean(0)).sum()
        return x + out, balance


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(8, 16)
        self.moe = SwitchLayer()
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        h, balance = self.moe(self.inp(x))
        return self.out(h), balance


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(4000, 8)
    sign = (x[:, :1] > 0).float() * 2 - 1
    y = sign * x[:, 1:2] + torch.where(x[:, 2:3] > 0, x[:, 3:4], -x[:, 4:5])

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    silent = torch.zeros(6, dtype=torch.long)
    for step in range(450):
        idx = torch.randint(0, 3500, (24,))
        pred, balance = model(x[idx])
        loss = F.mse_loss(pred, y[idx]) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        silent += torch.tensor([e[0].weight.grad is None for e in model.moe.experts])
        optimizer.step()
        if step % 50 == 0 or step == 449:
            with torch.no_grad():
                val = F.mse_loss(model(x[3500:])[0], y[3500:]).item()
            print(f"step {step:3d} loss {loss.item():.4f} val {val:.4f} idle batches per expert {silent.tolist()}")


if __name__ == "__main__":
    main()
