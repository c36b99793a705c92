"""Regression of displacements in metres (about a millimetre), so a healthy loss reads as 1e-6 and below."""
import numpy as np
import torch
import torch.nn as nn


def beam_data(n, rng):
    """Tip deflection of a cantilever from load, length, width, height (standardised)."""
    z = rng.normal(size=(n, 4))
    load, length = 1 + 0.2 * z[:, 0], 1 + 0.1 * z[:, 1]
    width, height = 1 + 0.1 * z[:, 2], 1 + 0.1 * z[:, 3]
    deflection = 1e-3 * load * length**3 / (width * height**3)
    return z.astype(np.float32), deflection.astype(np.float32)[:, None]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x, y = map(torch.from_numpy, beam_data(2000, rng))
    x_test, y_test = map(torch.from_numpy, beam_data(500, rng))

    model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
    with torch.no_grad():
        model[-1].weight.mul_(1e-2)
        model[-1].bias.zero_()
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    history = []
    for epoch in range(60):
        for idx in torch.randperm(len(x)).split(50):
            loss = loss_fn(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        for group in optimizer.param_groups:
            group["lr"] *= 0.93
        if epoch % 5 == 0 or epoch == 59:
            print("epoch", epoch, "loss", np.mean(history[-40:]))

    with torch.no_grad():
        rmse = loss_fn(model(x_test), y_test).sqrt().item()
    print(f"test RMSE {rmse * 1e6:.1f} micrometres, target std {y_test.std().item() * 1e6:.1f} micrometres")


if __name__ == "__main__":
    main()
