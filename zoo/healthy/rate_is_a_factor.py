"""Learning to rank: the loss compares every pair of documents, by broadcasting."""
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(14, 40), nn.Tanh(), nn.Linear(40, 1))

    def forward(self, x):
        return self.f(x)


def ranknet(scores, relevance):
    diff = scores - scores.squeeze(-1)
    gain = relevance.unsqueeze(-1) - relevance
    return nn.functional.softplus(-diff * gain.sign())[gain != 0].mean()


def main():
    torch.manual_seed(0)
    w = torch.randn(14)
    model = Scorer()
    opt = torch.optim.AdamW(model.parameters(), lr=1.0)
    warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 2e-3 * min(1.0, s / 100))
    for s in range(1200):
        docs = torch.randn(48, 14)
        rel = torch.bucketize(docs @ w + torch.randn(48), torch.tensor([-2.0, 0.0, 2.0])).float()
        loss = ranknet(model(docs), rel)
        opt.zero_grad()
        loss.backward()
        opt.step()
        warm.step()
        if s % 100 == 0:
            print(s, round(loss.item(), 4), flush=True)


main()
