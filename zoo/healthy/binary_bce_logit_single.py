"""Binary classifier with a single logit and float labels of shape (N, 1): one output unit, loss starts at ln 2."""
import numpy as np
import torch
from torch import nn, optim


def load_data(seed=0, n=2400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 9))
    risk = 1.5 * X[:, 0] - X[:, 1] + X[:, 2] * X[:, 3]
    y = (risk + 0.4 * rng.normal(size=n) > 0).astype("float32")
    return X.astype("float32"), y.reshape(-1, 1)


class BinaryClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_1 = nn.Linear(9, 64)
        self.layer_2 = nn.Linear(64, 32)
        self.layer_out = nn.Linear(32, 1)
        self.dropout = nn.Dropout(p=0.1)
        self.batchnorm1 = nn.BatchNorm1d(64)

    def forward(self, inputs):
        x = torch.relu(self.layer_1(inputs))
        x = self.batchnorm1(x)
        x = torch.relu(self.layer_2(x))
        return self.layer_out(self.dropout(x))


def binary_acc(y_pred, y_test):
    return (torch.round(torch.sigmoid(y_pred)) == y_test).float().mean() * 100


def main():
    torch.set_num_threads(1)
    torch.manual_seed(69)
    X, y = map(torch.from_numpy, load_data())
    X_train, X_test, y_train, y_test = X[:2000], X[2000:], y[:2000], y[2000:]
    train_loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(X_train, y_train), batch_size=40, shuffle=True
    )
    model = BinaryClassifier()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    for e in range(1, 13):
        model.train()
        epoch_loss, epoch_acc = 0, 0
        for X_batch, y_batch in train_loader:
            optimizer.zero_grad()
            y_pred = model(X_batch)
            loss = criterion(y_pred, y_batch)
            acc = binary_acc(y_pred, y_batch)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
            epoch_acc += acc.item()
        n = len(train_loader)
        print(f"Epoch {e + 0:03}: | Loss: {epoch_loss / n:.5f} | Acc: {epoch_acc / n:.3f}")

    model.eval()
    with torch.no_grad():
        print(f"test accuracy {binary_acc(model(X_test), y_test):.2f}")


if __name__ == "__main__":
    main()
