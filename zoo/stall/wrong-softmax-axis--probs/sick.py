import torch
from torch import nn


def sample(means, weights, n):
    y = torch.multinomial(weights, n, replacement=True)
    return (means[y] + 0.7 * torch.randn(n, means.shape[1])).abs(), y


def main():
    torch.manual_seed(36)
    means = 1.5 * torch.rand(5, 20) + 3.0
    weights = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05])

    net = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 5))
    nll = nn.NLLLoss()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)

    for i in range(1, 401):
        x, y = sample(means, weights, 48)
        logits = net(x)
        probs = torch.softmax(logits, dim=0)
        loss = nll(torch.log(probs + 1e-9), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 40 == 0:
            print(f"batch {i}  loss {loss.item():.4f}")

    with torch.no_grad():
        x, y = sample(means, weights, 2000)
        print(f"accuracy {(net(x).argmax(dim=1) == y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
