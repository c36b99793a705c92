"""Continue training of a small image classifier from its last checkpoint."""
import io

import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)


def build():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 5))


def batches(count):
    for _ in range(count):
        y = torch.randint(0, 5, (32,))
        x = torch.randn(32, 1, 12, 12) * 0.3
        x[torch.arange(32), 0, y * 2, :] += 1.0
        yield x, y


def train(model, count):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for x, y in batches(count):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    first = nn.DataParallel(build())
    print("first half:", round(train(first, 120), 4))
    file = io.BytesIO()
    torch.save({"weights": first.state_dict()}, file)
    file.seek(0)

    second = build()
    second.load_state_dict(torch.load(file)["weights"])
    print("second half:", round(train(second, 120), 4))


if __name__ == "__main__":
    main()
