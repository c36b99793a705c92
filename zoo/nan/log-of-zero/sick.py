"""Which patients come back within a month: logistic network on a table of standardised lab values."""
import torch
import torch.nn as nn

torch.manual_seed(3)
torch.set_num_threads(1)


def make_table(n):
    x = torch.randn(n, 12)
    risk = 2.5 * x[:, 0] - 1.8 * x[:, 3] + 1.2 * x[:, 5] * x[:, 7]
    return x, (risk > 0.3).float()


x_train, y_train = make_table(1200)
x_test, y_test = make_table(400)

net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)

for epoch in range(40):
    order = torch.randperm(len(x_train))
    running = 0.0
    for start in range(0, len(order), 60):
        rows = order[start:start + 60]
        x, y = x_train[rows], y_train[rows]
        p = torch.sigmoid(net(x)).squeeze(1)
        loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    with torch.no_grad():
        accuracy = ((net(x_test).squeeze(1) > 0).float() == y_test).float().mean()
    print(f"epoch {epoch:2d}  loss {running / 20:.4f}  test accuracy {accuracy:.3f}")
