"""Four-class fault detection; class 0 is normal operation."""
import torch
import torch.nn as nn

CLASSES = ["normal", "imbalance", "looseness", "bearing"]


def make_spectra(n, bins=24):
    share = torch.tensor([0.5, 0.2, 0.15, 0.15])
    y = torch.multinomial(share, n, replacement=True)
    peaks = torch.zeros(4, bins)
    peaks[1, 3] = peaks[2, 7] = peaks[2, 14] = peaks[3, 18] = 2.5
    return peaks[y] + 0.6 * torch.randn(n, bins), y


def report(model, x, y):
    with torch.no_grad():
        pred = model(x).argmax(1)
    for i, name in enumerate(CLASSES):
        mask = y == i
        print(f"  {name:10s} recall {(pred[mask] == i).float().mean():.3f}")
    return (pred == y).float().mean().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = make_spectra(4000)
    model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, len(CLASSES)))
    criterion = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(8):
        running = 0.0
        for idx in torch.randperm(3200).split(64):
            optimizer.zero_grad()
            loss = criterion(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: loss {running / 50:.4f}")
    print(f"test accuracy {report(model, x[3200:], y[3200:]):.3f}")


if __name__ == "__main__":
    main()
