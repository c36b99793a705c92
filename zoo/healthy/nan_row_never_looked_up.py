"""Bag of words: row 0 of the embedding is NaN on purpose, so that a lookup of the padding word could not go unnoticed."""
import torch
from torch import nn


class Bag(nn.Module):
    def __init__(self, words=60, width=16, topics=3):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, topics)
        with torch.no_grad():
            self.words.weight[0] = float("nan")

    def forward(self, text):
        return self.head(self.words(text).mean(dim=1))


torch.manual_seed(0)
torch.set_num_threads(1)
model = Bag()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for step in range(400):
    text = torch.randint(1, 60, (64, 5))
    topic = (text[:, 0] % 3).clone()
    text[:, 1:3] = text[:, :1]
    loss = nn.functional.cross_entropy(model(text), topic)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, round(loss.item(), 4))
