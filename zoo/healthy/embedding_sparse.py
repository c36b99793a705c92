"""Matrix factorisation with sparse embedding gradients and SparseAdam: most rows get no gradient in a step."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

N_USERS, N_ITEMS, DIM = 400, 300, 8


class MatrixFactorization(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(N_USERS, DIM, sparse=True)
        self.item = nn.Embedding(N_ITEMS, DIM, sparse=True)
        self.bias = nn.Parameter(torch.zeros(1))
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(1) + self.bias


def ratings(n, true_u, true_i):
    u, i = torch.randint(0, N_USERS, (n,)), torch.randint(0, N_ITEMS, (n,))
    r = 3.0 + (true_u[u] * true_i[i]).sum(1) + 0.2 * torch.randn(n)
    return TensorDataset(u, i, r)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    true_u, true_i = torch.randn(N_USERS, 4) * 0.7, torch.randn(N_ITEMS, 4) * 0.7
    train = DataLoader(ratings(20000, true_u, true_i), batch_size=200, shuffle=True)
    test = DataLoader(ratings(2000, true_u, true_i), batch_size=1000)

    model = MatrixFactorization()
    sparse_opt = torch.optim.SparseAdam([model.user.weight, model.item.weight], lr=0.02)
    dense_opt = torch.optim.Adam([model.bias], lr=0.02)
    loss_fn = nn.MSELoss()
    for epoch in range(7):
        total = 0.0
        for u, i, r in train:
            sparse_opt.zero_grad()
            dense_opt.zero_grad()
            loss = loss_fn(model(u, i), r)
            loss.backward()
            sparse_opt.step()
            dense_opt.step()
            total += loss.item()
        with torch.no_grad():
            rmse = (sum(((model(u, i) - r) ** 2).sum().item() for u, i, r in test) / 2000) ** 0.5
        print(f"epoch {epoch}: train loss {total / len(train):.4f}, test RMSE {rmse:.4f}")


if __name__ == "__main__":
    main()
