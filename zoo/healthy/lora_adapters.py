"""LoRA fine-tuning: base weights frozen, B starts at zero so that A has no gradient in the first step."""
import math

import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r: int = 4, alpha: int = 8):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.T @ self.lora_B.T) * self.scaling


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 64)
        self.mid = nn.Linear(64, 64)
        self.down = nn.Linear(64, 8)

    def forward(self, x):
        return self.down(torch.relu(self.mid(torch.relu(self.up(x)))))


def fit(model, x, y, steps, lr, tag):
    params = [p for p in model.parameters() if p.requires_grad]
    print(f"{tag}: {sum(p.numel() for p in params)} trainable of {sum(p.numel() for p in model.parameters())}")
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    for step in range(steps):
        idx = torch.randint(len(x), (64,))
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"{tag} step {step:4d} loss {loss.item():.4f}")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    w = torch.randn(16, 8) / 4
    skew = 0.15 * torch.randn(16, 16)
    rotation = torch.matrix_exp(skew - skew.T)
    x = torch.randn(4000, 16)
    pretrain_y, finetune_y = torch.tanh(x @ w), torch.tanh(x @ rotation @ w)

    model = Net()
    fit(model, x[:2000], pretrain_y[:2000], 400, 3e-3, "pretrain")

    model.requires_grad_(False)
    for name in ("up", "mid", "down"):
        setattr(model, name, LoRALinear(getattr(model, name)))
    fit(model, x[2000:], finetune_y[2000:], 500, 5e-3, "lora")


if __name__ == "__main__":
    main()
