"""Encoder and decoder learn to copy: the encoder's input is the target itself, the decoder's is shifted right."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
VOCABULARY, LENGTH, START = 14, 12, 0


class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 48)
        self.place = nn.Parameter(0.1 * torch.randn(LENGTH, 48))
        self.body = nn.Transformer(48, 4, 1, 1, 96, dropout=0.0, batch_first=True)
        self.out = nn.Linear(48, VOCABULARY)

    def forward(self, source, given):
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        return self.out(self.body(self.embed(source) + self.place, self.embed(given) + self.place, tgt_mask=mask))


model = Copier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(220):
    source = torch.randint(1, VOCABULARY, (32, LENGTH))
    given = torch.cat([torch.full((32, 1), START), source[:, :-1]], 1)
    loss = nn.functional.cross_entropy(model(source, given).reshape(-1, VOCABULARY), source.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, round(loss.item(), 4))
