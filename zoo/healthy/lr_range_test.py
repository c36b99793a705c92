"""Learning-rate finder: the loss is made to explode on purpose, then the weights are restored and trained."""
import copy

import torch
import torch.nn as nn


def lr_find(model, loss_fn, data, start=1e-5, end=50.0, num_it=100):
    """Raises the rate until the loss is four times its best; returns a tenth of the rate at the minimum."""
    state = copy.deepcopy(model.state_dict())
    opt = torch.optim.SGD(model.parameters(), lr=start)
    best, lrs, losses, avg = float("inf"), [], [], 0.0
    for i in range(num_it):
        lr = start * (end / start) ** (i / (num_it - 1))
        opt.param_groups[0]["lr"] = lr
        x, y = data()
        loss = loss_fn(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg = 0.9 * avg + 0.1 * loss.item()
        smooth = avg / (1 - 0.9 ** (i + 1))
        lrs.append(lr)
        losses.append(smooth)
        if smooth > 4 * best:
            break
        best = min(best, smooth)
    model.load_state_dict(state)
    suggestion = lrs[losses.index(min(losses))] / 10
    print(f"lr finder: {len(lrs)} iterations, min loss {min(losses):.4f}, last loss {losses[-1]:.4f}, "
          f"suggestion {suggestion:.3g}")
    return suggestion


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    w = torch.randn(14, 6)
    x_all = torch.randn(5000, 14)
    y_all = (x_all @ w).argmax(1)

    def data():
        idx = torch.randint(0, 4500, (64,))
        return x_all[idx], y_all[idx]

    model = nn.Sequential(nn.Linear(14, 64), nn.ReLU(), nn.Linear(64, 6))
    loss_fn = nn.CrossEntropyLoss()
    lr = lr_find(model, loss_fn, data)
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    for step in range(700):
        x, y = data()
        loss = loss_fn(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 70 == 0 or step == 699:
            print(f"step {step:3d} loss {loss.item():.4f}")
    with torch.no_grad():
        print(f"test accuracy {(model(x_all[4500:]).argmax(1) == y_all[4500:]).float().mean():.3f}")


if __name__ == "__main__":
    main()
