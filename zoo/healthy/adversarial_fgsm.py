"""Adversarial training: FGSM takes input gradients first, the parameter gradients of that pass are cleared."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

EPSILON = 0.25


def fgsm(model, x, y, eps=EPSILON):
    x_adv = x.clone().detach().requires_grad_(True)
    loss = F.cross_entropy(model(x_adv), y)
    loss.backward()
    return (x_adv + eps * x_adv.grad.sign()).detach()


def evaluate(model, loader, attack=False):
    model.eval()
    correct = 0
    for x, y in loader:
        if attack:
            x = fgsm(model, x, y)
        with torch.no_grad():
            correct += (model(x).argmax(1) == y).sum().item()
    model.zero_grad()
    return correct / len(loader.dataset)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(8)
    centers = torch.randn(6, 30) * 0.6
    y = torch.randint(0, 6, (2400,))
    x = centers[y] + 0.5 * torch.randn(2400, 30)
    train_loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=64, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=200)

    model = nn.Sequential(nn.Linear(30, 100), nn.ReLU(), nn.Linear(100, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(1, 11):
        model.train()
        train_loss = 0.0
        for inputs, targets in train_loader:
            adv = fgsm(model, inputs, targets)
            optimizer.zero_grad()
            loss = 0.5 * F.cross_entropy(model(inputs), targets) + 0.5 * F.cross_entropy(model(adv), targets)
            loss.backward()
            optimizer.step()
            train_loss += loss.item()
        clean, robust = evaluate(model, test_loader), evaluate(model, test_loader, attack=True)
        print(f"Epoch {epoch}: loss {train_loss / len(train_loader):.4f}, clean acc {clean:.3f}, robust {robust:.3f}")


if __name__ == "__main__":
    main()
