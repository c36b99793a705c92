"""Fit the drag of small profiles from their coordinates; plain tensors, no DataLoader."""
import numpy as np
import torch


def simulate(n, rng):
    points = rng.uniform(-1, 1, size=(n, 8)).astype(np.float32)
    thickness = np.abs(points[:, :4]).sum(axis=1)
    camber = np.tanh(2 * points[:, 4:].mean(axis=1))
    drag = thickness + camber ** 2 + 0.3 * points[:, 0] * points[:, 5]
    drag = (drag - drag.mean()) / drag.std()
    return points, drag.astype(np.float32).reshape(-1, 1)


class Surrogate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(8, 96)
        self.fc2 = torch.nn.Linear(96, 96)
        self.fc3 = torch.nn.Linear(96, 1)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.fc3(x)


def squared_error(pred, target):
    return ((pred - target) ** 2).mean()


def fit(model, points, drag, iterations=400, batch_size=64, lr=2e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    history = []
    for it in range(1, iterations + 1):
        rows = torch.randint(0, len(points), (batch_size,))
        loss = squared_error(model(points[rows]), drag[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if it % 50 == 0:
            print("iteration", it, "loss", round(sum(history[-50:]) / 50, 4))
    return history


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    points, drag = (torch.from_numpy(a) for a in simulate(4000, rng))
    model = Surrogate()
    fit(model, points[:3500], drag[:3500])
    with torch.no_grad():
        pred = model(points[3500:]).view(-1)
    truth = drag[3500:].view(-1)
    r2 = 1 - ((pred - truth) ** 2).mean() / truth.var()
    print("held-out R2", round(r2.item(), 3))


if __name__ == "__main__":
    main()
