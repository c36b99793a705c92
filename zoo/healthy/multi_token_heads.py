"""A language model with two heads: one for the next token, one for the token after it."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
torch.set_num_threads(1)
VOCABULARY = 16
table = torch.randint(VOCABULARY, (VOCABULARY, 2))


def sequences(count, length):
    rows = [torch.randint(VOCABULARY, (count,))]
    for _ in range(length - 1):
        rows.append(table[rows[-1], torch.randint(2, (count,))])
    return torch.stack(rows, 1)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32)
        self.rnn = nn.LSTM(32, 64, batch_first=True)
        self.near, self.far = nn.Linear(64, VOCABULARY), nn.Linear(64, VOCABULARY)

    def forward(self, tokens):
        states, _ = self.rnn(self.embed(tokens))
        return self.near(states), self.far(states)


model = TwoHeads()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(150):
    tokens = sequences(32, 26)
    near, far = model(tokens[:, :-2])
    loss = F.cross_entropy(near.transpose(1, 2), tokens[:, 1:-1]) + 0.3 * F.cross_entropy(far.transpose(1, 2), tokens[:, 2:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, round(loss.item(), 4))
