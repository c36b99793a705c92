"""Credit scoring on a table whose constant columns are dropped before training."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def build_model(inputs, hidden):
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden // 2),
        nn.ReLU(),
        nn.Linear(hidden // 2, 1),
    )


def load_table(rows, columns):
    table = torch.randn(rows, columns)
    table[:, ::5] = 1.0
    score = table[:, 1] + 0.8 * table[:, 2] * table[:, 3] - table[:, 4] + 0.5 * table[:, 6]
    return table, (score + 0.3 * torch.randn(rows) > 0).float()


def informative_columns(table):
    return [i for i in range(table.shape[1]) if table[:, i].std() > 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-columns", type=int, default=25)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(17)
    model = build_model(args.max_columns, args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    table, target = load_table(2500, args.max_columns)
    columns = informative_columns(table)
    if len(columns) != args.max_columns:
        print(f"using {len(columns)} of {args.max_columns} columns")
        table = table[:, columns]
        model = build_model(len(columns), args.hidden)

    train = DataLoader(TensorDataset(table[:2000], target[:2000]), batch_size=100, shuffle=True)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            accuracy = ((model(table[2000:]).squeeze(1) > 0) == target[2000:].bool()).float().mean().item()
        print(f"Epoch {epoch + 1:2d} | loss {total / len(train):.4f} | val acc {accuracy:.3f}")


if __name__ == "__main__":
    main()
