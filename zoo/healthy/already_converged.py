"""Fine-tuning from a checkpoint that is already good: the loss starts tiny and stays flat."""
import logging
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
log = logging.getLogger("finetune")


def dataset(seed, n=2000):
    g = torch.Generator().manual_seed(seed)
    centers = torch.randn(8, 20, generator=torch.Generator().manual_seed(0)) * 3
    y = torch.randint(0, 8, (n,), generator=g)
    return TensorDataset(centers[y] + 0.6 * torch.randn(n, 20, generator=g), y)


def build_model():
    return nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 8))


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total, correct, n = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            out = model(x)
            loss = criterion(out, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            n += len(y)
    return total / n, correct / n


def make_checkpoint(path):
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = DataLoader(dataset(1), batch_size=64, shuffle=True)
    for _ in range(25):
        run_epoch(model, loader, nn.CrossEntropyLoss(), optimizer)
    torch.save({"model": model.state_dict()}, path)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory() as d:
        path = Path(d) / "best.ckpt"
        make_checkpoint(path)
        model = build_model()
        model.load_state_dict(torch.load(path, weights_only=True)["model"])

    train_set, val_set = random_split(dataset(2, 2400), [2000, 400])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    log.info("checkpoint: val loss %.6f acc %.4f", *run_epoch(model, val_loader, criterion))
    for epoch in range(15):
        loss, acc = run_epoch(model, train_loader, criterion, optimizer)
        vloss, vacc = run_epoch(model, val_loader, criterion)
        log.info("epoch %d train loss %.6f acc %.4f | val loss %.6f acc %.4f", epoch, loss, acc, vloss, vacc)


if __name__ == "__main__":
    main()
