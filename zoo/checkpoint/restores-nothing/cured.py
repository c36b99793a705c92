"""Names the species of a tree from measurements of its leaves; the labels come from volunteers."""
import copy

import torch
from torch import nn

SPECIES, MEASURES, EPOCHS, BATCH = 8, 30, 60, 40


def leaves(count, shapes, generator, mistaken=0.0):
    species = torch.randint(0, SPECIES, (count,), generator=generator)
    measures = shapes[species] + 1.6 * torch.randn(count, MEASURES, generator=generator)
    guessed = torch.rand(count, generator=generator) < mistaken
    labels = torch.where(guessed, torch.randint(0, SPECIES, (count,), generator=generator), species)
    return measures, labels


def accuracy(model, measures, species):
    model.eval()
    with torch.no_grad():
        return (model(measures).argmax(1) == species).float().mean().item()


def train_epoch(model, optimizer, measures, labels):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(measures)).split(BATCH):
        loss = nn.functional.cross_entropy(model(measures[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(measures)


def fit(model, train, valid):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    best, best_score = None, 0.0
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer, *train)
        score = accuracy(model, *valid)
        if score > best_score:
            best_score = score
            best = copy.deepcopy(model.state_dict())
        if epoch % 5 == 0 or epoch == EPOCHS - 1:
            print(f"epoch {epoch:2d}  loss {loss:.4f}  validation accuracy {score:.3f}  best {best_score:.3f}")
    model.load_state_dict(best)
    return best_score


def main():
    torch.set_num_threads(1)
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(11)
    shapes = torch.randn(SPECIES, MEASURES, generator=generator)
    train = leaves(1200, shapes, generator, mistaken=0.5)
    valid = leaves(600, shapes, generator)
    test = leaves(2000, shapes, generator)
    model = nn.Sequential(
        nn.Linear(MEASURES, 256), nn.ReLU(),
        nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, SPECIES),
    )
    print(f"best validation accuracy {fit(model, train, valid):.3f}")
    print(f"test accuracy {accuracy(model, *test):.3f}")


if __name__ == "__main__":
    main()
