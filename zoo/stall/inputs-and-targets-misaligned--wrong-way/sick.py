"""Character-level transformer, windows cut out of one long text."""
import torch
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)
ALPHABET, WIDTH, WINDOW, BATCH = 20, 48, 32, 24
rules = torch.randint(ALPHABET, (ALPHABET, ALPHABET))
text = [0, 1]
for noise in torch.rand(20_000).tolist():
    text.append(int(rules[text[-2], text[-1]]) if noise < 0.8 else int(noise * 1e6) % ALPHABET)
text = torch.tensor(text)


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(ALPHABET, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(WINDOW, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, ALPHABET)
        self.register_buffer("mask", torch.triu(torch.full((WINDOW, WINDOW), float("-inf")), 1))

    def forward(self, x):
        return self.head(self.blocks(self.letters(x) + self.places, mask=self.mask, is_causal=True))


def batch():
    starts = torch.randint(len(text) - WINDOW - 1, (BATCH,))
    past = torch.stack([text[s:s + WINDOW] for s in starts])
    future = torch.stack([text[s + 1:s + WINDOW + 1] for s in starts])
    return future, past


model = CharModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for step in range(160):
    x, y = batch()
    loss = criterion(model(x).transpose(1, 2), y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, round(loss.item(), 4))
