"""Guesses the language of a word from its letters."""

import random

import torch
import torch.nn as nn

VOWELS, STOPS, LIQUIDS = "aeiou", "ptkbdg", "lrmns"


def word(language, rng):
    if language == 0:
        return "".join(rng.choice(STOPS) + rng.choice(VOWELS) for _ in range(3))
    if language == 1:
        return "".join(rng.choice(LIQUIDS) + rng.choice("aio") for _ in range(3))
    return "".join(rng.choice(VOWELS) + rng.choice(STOPS + LIQUIDS) for _ in range(3))


def dataset(n):
    rng = random.Random(8)
    labels = [rng.randrange(3) for _ in range(n)]
    letters = torch.tensor([[ord(c) - 97 for c in word(language, rng)] for language in labels])
    return nn.functional.one_hot(letters, 26).flatten(1).float(), torch.tensor(labels)


class Guesser(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6 * 26, 64)
        self.out = nn.Linear(64, 3)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


def train():
    torch.manual_seed(8)
    x, y = dataset(2000)
    x = x.half()
    model = Guesser().half()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-4)
    for epoch in range(4):
        for index in torch.randperm(len(x)).split(50):
            loss = nn.functional.cross_entropy(model(x[index]).float(), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    train()
