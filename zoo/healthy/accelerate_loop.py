"""Accelerate loop with accumulate(): step and zero_grad are called on every batch and act on every fourth."""
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loaders(batch_size):
    g = torch.Generator().manual_seed(3)
    w = torch.randn(20, 4, generator=g)
    x = torch.randn(3000, 20, generator=g)
    y = (x @ w + 0.5 * torch.randn(3000, 4, generator=g)).argmax(1)
    train, test = TensorDataset(x[:2400], y[:2400]), TensorDataset(x[2400:], y[2400:])
    return DataLoader(train, batch_size=batch_size, shuffle=True), DataLoader(test, batch_size=200)


def main():
    torch.set_num_threads(1)
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    train_loader, test_loader = make_loaders(batch_size=15)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=200)
    loss_function = nn.CrossEntropyLoss()

    model, optimizer, train_loader, test_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, test_loader, scheduler
    )
    for epoch in range(5):
        model.train()
        total = 0.0
        for inputs, targets in train_loader:
            with accelerator.accumulate(model):
                loss = loss_function(model(inputs), targets)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            total += loss.item()

        model.eval()
        correct = 0
        for inputs, targets in test_loader:
            with torch.no_grad():
                predictions = model(inputs).argmax(dim=-1)
            predictions, targets = accelerator.gather_for_metrics((predictions, targets))
            correct += (predictions == targets).sum().item()
        accelerator.print(f"epoch {epoch}: train loss {total / len(train_loader):.4f}, accuracy {correct / 6:.1f}%")


if __name__ == "__main__":
    main()
