"""OneCycleLR stepped once per batch: the rate starts 25 times lower, peaks, and ends near zero with the last batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

epochs = 8
max_lr = 0.1


def make_spirals(n_per_class=700, n_classes=3):
    xs, ys = [], []
    for c in range(n_classes):
        r = torch.rand(n_per_class) * 0.95 + 0.05
        t = r * 4 + c * 2 * torch.pi / n_classes + torch.randn(n_per_class) * 0.15
        xs.append(torch.stack([r * torch.sin(t), r * torch.cos(t)], 1))
        ys.append(torch.full((n_per_class,), c))
    x, y = torch.cat(xs) * 2, torch.cat(ys)
    order = torch.randperm(len(x))
    return x[order], y[order]


def get_lr(optimizer):
    for param_group in optimizer.param_groups:
        return param_group["lr"]


@torch.no_grad()
def evaluate(model, val_loader):
    model.eval()
    outs = [(F.cross_entropy(model(x), y), (model(x).argmax(1) == y).float().mean()) for x, y in val_loader]
    return [torch.stack(v).mean().item() for v in zip(*outs)]


def fit_one_cycle(epochs, max_lr, model, train_loader, val_loader):
    optimizer = torch.optim.SGD(model.parameters(), max_lr, momentum=0.9, weight_decay=1e-4)
    sched = OneCycleLR(optimizer, max_lr, epochs=epochs, steps_per_epoch=len(train_loader))
    for epoch in range(epochs):
        model.train()
        train_losses = []
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            train_losses.append(loss.detach())
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
            sched.step()
        val_loss, val_acc = evaluate(model, val_loader)
        print("Epoch [{}], last_lr: {:.5f}, train_loss: {:.4f}, val_loss: {:.4f}, val_acc: {:.4f}".format(
            epoch, get_lr(optimizer), torch.stack(train_losses).mean().item(), val_loss, val_acc))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    x, y = make_spirals()
    train_loader = DataLoader(TensorDataset(x[:1700], y[:1700]), batch_size=20, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[1700:], y[1700:]), batch_size=100)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    fit_one_cycle(epochs, max_lr, model, train_loader, val_loader)


if __name__ == "__main__":
    main()
