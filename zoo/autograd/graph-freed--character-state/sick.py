"""Tag the characters of a stream of sensor words with a recurrent network, chunk by chunk."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
VOCABULARY, TAGS, CHUNK = 40, 6, 24


class Tagger(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, TAGS)

    def forward(self, tokens, state):
        hidden, state = self.rnn(self.embedding(tokens), state)
        return self.out(hidden), state


def stream(rows=8, length=960):
    tokens = torch.randint(0, VOCABULARY, (rows, length))
    return tokens, (tokens + tokens.roll(1, 1)) % TAGS


def main():
    tokens, tags = stream()
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        state = None
        total = 0.0
        for start in range(0, tokens.shape[1], CHUNK):
            x, y = tokens[:, start : start + CHUNK], tags[:, start : start + CHUNK]
            logits, state = model(x, state)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total * CHUNK / tokens.shape[1]:.4f}")


if __name__ == "__main__":
    main()
