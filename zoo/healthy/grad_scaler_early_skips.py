"""fp16 autocast with a GradScaler that starts far too high: the first steps are skipped, then training is fine."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1, stride=2)
        self.fc = nn.Linear(24, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.fc(x.amax(dim=(2, 3)))


def shapes(n):
    """10x10 images with a horizontal bar, a vertical bar, a cross or a box."""
    x = 0.2 * torch.randn(n, 1, 10, 10)
    y = torch.randint(0, 4, (n,))
    top, left = torch.randint(0, 6, (n,)).tolist(), torch.randint(0, 6, (n,)).tolist()
    for i, (kind, r, c) in enumerate(zip(y.tolist(), top, left)):
        patch = x[i, 0, r:r + 5, c:c + 5]
        if kind in (0, 2):
            patch[2, :] += 1
        if kind in (1, 2):
            patch[:, 2] += 1
        if kind == 3:
            patch[[0, 4], :] += 1
            patch[1:4, [0, 4]] += 1
    return x, y


def main():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    train_x, train_y = shapes(2048)
    test_x, test_y = shapes(400)
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22)

    skipped = 0
    for step in range(240):
        idx = torch.randint(len(train_x), (48,))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped += scaler.get_scale() < before
        if step % 20 == 0 or step == 239:
            print(f"step {step:4d} | loss {loss.item():.4f} | scale {scaler.get_scale():.0f} | skipped {skipped}")

    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        print(f"test acc {(model(test_x).argmax(1) == test_y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
