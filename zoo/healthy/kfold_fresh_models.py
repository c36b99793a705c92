"""Five-fold cross-validation: model and optimizer are made anew for each fold, so the loss jumps back four times."""
import numpy as np
import torch
from torch import nn


def kfold_indices(n, k, rng):
    folds = np.array_split(rng.permutation(n), k)
    for i in range(k):
        yield np.concatenate([f for j, f in enumerate(folds) if j != i]), folds[i]


def reset_weights(m):
    for layer in m.children():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(42)
    rng = np.random.default_rng(42)
    X = torch.from_numpy(rng.normal(size=(1500, 8)).astype(np.float32))
    y = ((X[:, 0] - X[:, 1] * X[:, 2]) > 0).long()
    results = {}
    for fold, (train_ids, test_ids) in enumerate(kfold_indices(len(X), 5, rng)):
        print(f"FOLD {fold}\n--------------------------------")
        train_ids, test_ids = torch.from_numpy(train_ids), torch.from_numpy(test_ids)
        network = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 2))
        network.apply(reset_weights)
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
        loss_function = nn.CrossEntropyLoss()
        for epoch in range(6):
            current_loss = 0.0
            for batch in train_ids[torch.randperm(len(train_ids))].split(60):
                optimizer.zero_grad()
                loss = loss_function(network(X[batch]), y[batch])
                loss.backward()
                optimizer.step()
                current_loss += loss.item() / 20
            print(f"epoch {epoch + 1} loss: {current_loss:.3f}")
        with torch.no_grad():
            results[fold] = (network(X[test_ids]).argmax(1) == y[test_ids]).float().mean().item() * 100
        print(f"Accuracy for fold {fold}: {results[fold]:.1f} %")
    print(f"Average: {np.mean(list(results.values())):.1f} %")


if __name__ == "__main__":
    main()
