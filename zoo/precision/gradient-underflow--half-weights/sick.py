import torch
import torch.nn as nn
import torch.nn.functional as F


class Ranker(nn.Module):
    """Scores how well an offer fits a request; both are given as features."""

    def __init__(self, features=20, width=64):
        super().__init__()
        self.request = nn.Linear(features, width)
        self.offer = nn.Linear(features, width)
        self.score = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, request, offer):
        return self.score(torch.tanh(self.request(request)) * torch.tanh(self.offer(offer))).squeeze(-1)


def clicks(n, generator):
    """One offer in a thousand is clicked: labels are rates, averaged over many views."""
    request, offer = torch.randn(n, 20, generator=generator), torch.randn(n, 20, generator=generator)
    rate = 2e-3 * torch.sigmoid(2 * (request * offer)[:, :5].sum(1))
    return request, offer, rate


def main():
    torch.manual_seed(12)
    generator = torch.Generator().manual_seed(12)
    model = Ranker().half()
    dtype = next(model.parameters()).dtype
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.9)
    for step in range(200):
        request, offer, rate = clicks(2048, generator)
        predicted = model(request.to(dtype), offer.to(dtype)).float()
        loss = F.mse_loss(predicted * 1e-2, rate)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(step, f"{loss.item():.3e}")


if __name__ == "__main__":
    main()
