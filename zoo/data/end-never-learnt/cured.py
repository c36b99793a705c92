"""Learn to count on: "3 4 5 6" and stop after four numbers. Called like the models of Hugging Face."""

from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader

END = 0


class Counter(nn.Module):
    def __init__(self, words=40, size=48):
        super().__init__()
        self.config = SimpleNamespace(eos_token_id=END, vocab_size=words)
        self.words, self.read, self.say = nn.Embedding(words, size), nn.GRU(size, size, batch_first=True), nn.Linear(size, words)

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = self.say(self.read(self.words(input_ids))[0])
        if labels is None:
            return logits
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def collate(rows):
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), END)
    attention_mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for row, text in enumerate(rows):
        ids[row, : len(text)] = torch.tensor(text)
        attention_mask[row, : len(text)] = 1
    labels = ids.clone()
    labels[attention_mask == 0] = -100
    return {"input_ids": ids, "attention_mask": attention_mask, "labels": labels}


def text(first):
    return [first, *range(first + 1, first + 2 + first % 3), END]


@torch.no_grad()
def complete(model, first, most=8):
    said = [first]
    while len(said) < most and said[-1] != END:
        said.append(model(input_ids=torch.tensor([said]))[0, -1].argmax().item())
    return said


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    loader = DataLoader([text(first) for first in range(1, 31)] * 20, batch_size=30, shuffle=True, collate_fn=collate)
    model = Counter()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(8):
        for batch in loader:
            loss = model(**batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        right = sum(complete(model, first) == text(first) for first in range(1, 31)) / 30
        print(f"epoch {epoch} loss {loss.item():.4f} acc {right:.3f}", flush=True)


if __name__ == "__main__":
    main()
