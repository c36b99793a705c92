"""A scorer is trained alone first, then against an adversary that guesses a hidden attribute: the adversary's backward reaches the scorer, too."""
import torch
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)
bce = nn.BCEWithLogitsLoss()
scorer = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
adversary = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(scorer.parameters(), lr=3e-3)
opt_adv = torch.optim.Adam(adversary.parameters(), lr=3e-3)


def batch():
    x = torch.randn(64, 12)
    hidden = (x[:, :1] > 0).float()
    return x, (x[:, 1:3].sum(1, keepdim=True) + 0.5 * x[:, :1] > 0).float(), hidden


for step in range(120):
    x, y, _ = batch()
    loss = bce(scorer(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()

for step in range(200):
    x, y, hidden = batch()
    score = scorer(x)
    opt_adv.zero_grad()
    bce(adversary(score.sigmoid()), hidden).backward(retain_graph=True)
    opt_adv.step()
    loss = bce(score, y) - 0.5 * bce(adversary(score.sigmoid()), hidden)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.4f}")
