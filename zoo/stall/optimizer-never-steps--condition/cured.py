import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, optimizer, loss_fn, clip=1.0):
        self.model = model
        self.optimizer = optimizer
        self.loss_fn = loss_fn
        self.clip = clip
        self.history = []

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        if torch.isfinite(loss):
            self.optimizer.step()
        return loss.item()

    def fit(self, x, y, epochs, batch_size):
        for epoch in range(epochs):
            order = torch.randperm(len(x))
            losses = [self.step(x[i], y[i]) for i in order.split(batch_size)]
            self.history.append(sum(losses) / len(losses))
            if (epoch + 1) % 5 == 0:
                print(f"epoch {epoch + 1:3d}  train_loss={self.history[-1]:.5f}")


def house_prices(n):
    features = torch.rand(n, 8) * 2 - 1
    price = 2.0 * features[:, 0] - features[:, 1] * features[:, 2] + torch.sin(3 * features[:, 3])
    return features, price.unsqueeze(1) + 0.05 * torch.randn(n, 1)


def main():
    torch.manual_seed(7)
    x, y = house_prices(1024)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), nn.MSELoss())
    trainer.fit(x, y, epochs=30, batch_size=64)

    x_test, y_test = house_prices(512)
    with torch.no_grad():
        rmse = (model(x_test) - y_test).pow(2).mean().sqrt()
    print(f"test RMSE {rmse.item():.4f}")


if __name__ == "__main__":
    main()
