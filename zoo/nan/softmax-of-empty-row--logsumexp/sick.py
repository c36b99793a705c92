"""Phonemes as a hidden Markov model: learns transitions and emissions with the forward algorithm in log space."""
import torch
from torch import nn

STATES, SYMBOLS, LENGTH = 4, 6, 15
ALLOWED = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]], dtype=torch.bool)


class Hmm(nn.Module):
    def __init__(self):
        super().__init__()
        self.transition = nn.Parameter(torch.randn(STATES, STATES))
        self.emission = nn.Parameter(torch.randn(STATES, SYMBOLS))

    def forward(self, seen):
        step = self.transition.masked_fill(~ALLOWED, float("-inf")).log_softmax(-1)
        emit = self.emission.log_softmax(-1)
        alpha = torch.full((len(seen), STATES), float("-inf"))
        alpha[:, 0] = 0.0
        alpha = alpha + emit[:, seen[:, 0]].t()
        for t in range(1, seen.shape[1]):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + step, dim=1) + emit[:, seen[:, t]].t()
        return -alpha.logsumexp(-1).mean() / seen.shape[1]


def sequences(n, g):
    state, rows = torch.zeros(n, dtype=torch.long), []
    for _ in range(LENGTH):
        symbol = torch.where(torch.rand(n, generator=g) < 0.9, state, torch.randint(0, SYMBOLS, (n,), generator=g))
        rows.append(symbol)
        state = torch.where(torch.rand(n, generator=g) < 0.4, (state + 1) % STATES, state)
    return torch.stack(rows, dim=1)


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(11)
    model = Hmm()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for it in range(120):
        loss = model(sequences(32, g))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 20 == 0:
            print(f"iteration {it:3d} nll per symbol {loss.item():.4f}")


if __name__ == "__main__":
    main()
