"""Mixup with probability targets: labels are float vectors, train accuracy stays below test accuracy."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def mixup(x, y, alpha=0.4, num_classes=5):
    lam = torch.distributions.Beta(alpha, alpha).sample()
    index = torch.randperm(x.size(0))
    target = F.one_hot(y, num_classes).float()
    return lam * x + (1 - lam) * x[index], lam * target + (1 - lam) * target[index]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    y = torch.randint(0, 5, (2500,))
    x = torch.randn(5, 20)[y] + torch.randn(2500, 20)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    for epoch in range(12):
        model.train()
        train_loss, hits = 0.0, 0
        for idx in torch.randperm(2000).split(50):
            inputs, targets = mixup(x[idx], y[idx])
            outputs = model(inputs)
            loss = F.cross_entropy(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_loss += loss.item() / 40
            hits += (outputs.argmax(1) == y[idx]).sum().item()
        model.eval()
        with torch.no_grad():
            acc = (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
        print(f"Epoch {epoch}: Loss: {train_loss:.3f} | Acc: {hits / 20:.1f}% | Test: {100 * acc:.1f}%")


if __name__ == "__main__":
    main()
