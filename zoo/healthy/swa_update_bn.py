"""Stochastic weight averaging: the averaged model is filled by update_parameters, then update_bn in train mode."""
import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    centers = torch.randn(6, 20) * 0.7
    y = torch.randint(0, 6, (3000,))
    x = centers[y] + torch.randn(3000, 20)
    loader = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=60, shuffle=True)

    model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10, eta_min=0.05)
    swa_model = AveragedModel(model)
    swa_start = 8
    swa_scheduler = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)

    for epoch in range(14):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch >= swa_start:
            swa_model.update_parameters(model)
            swa_scheduler.step()
        else:
            scheduler.step()
        val_loss, acc = evaluate(model, x[2400:], y[2400:])
        print("epoch %2d  loss %.4f  val loss %.4f acc %.3f" % (epoch, total / len(loader), val_loss, acc))

    update_bn(loader, swa_model)
    print("SWA model: val loss %.4f acc %.3f" % evaluate(swa_model, x[2400:], y[2400:]))


if __name__ == "__main__":
    main()
