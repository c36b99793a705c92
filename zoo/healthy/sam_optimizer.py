"""Sharpness-aware minimisation: two backwards per step, weights perturbed and restored in between."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        raise RuntimeError("call first_step and second_step")

    def _grad_norm(self):
        return torch.norm(torch.stack([p.grad.norm(p=2) for g in self.param_groups for p in g["params"]]), p=2)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(42)
    x = torch.randn(2500, 10)
    y = ((x[:, 0] * x[:, 1] > 0).long() + 2 * (x[:, 2] > 0).long())
    train = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)

    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    criterion = nn.CrossEntropyLoss()
    optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.03, momentum=0.9)

    for epoch in range(12):
        model.train()
        epoch_loss = 0
        for inputs, targets in train:
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.first_step(zero_grad=True)

            criterion(model(inputs), targets).backward()
            optimizer.second_step(zero_grad=True)
            epoch_loss += loss.item()
        model.eval()
        with torch.no_grad():
            acc = (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
        print(f"| epoch {epoch + 1:2d} | loss {epoch_loss / len(train):.4f} | test accuracy {acc:.4f} |")


if __name__ == "__main__":
    main()
