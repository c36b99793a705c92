"""House prices from eight standardised features."""
import torch
import torch.nn as nn


def houses(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g) @ (torch.eye(8) + 0.3 * torch.ones(8, 8))
    w = torch.tensor([3.0, -1.0, 0.5, 2.0, 0.0, 1.0, -2.0, 0.7])
    return x, (x @ w + 0.3 * torch.randn(n, generator=g)).unsqueeze(1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = houses(1024, seed=1)
    model = nn.Linear(8, 1)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.12)
    for epoch in range(7):
        order = torch.randperm(len(x))
        for i in range(0, len(x), 64):
            batch, target = x[order[i:i + 64]], y[order[i:i + 64]]
            loss = criterion(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if (i // 64) % 4 == 0:
                print(f"epoch {epoch} batch {i // 64:2d} loss {loss.item():.4g}")


if __name__ == "__main__":
    main()
