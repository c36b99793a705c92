"""Does a melody come back? Pairs of short melodies, read by a Transformer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Listener(nn.Module):
    def __init__(self, notes=12, size=32):
        super().__init__()
        self.notes = nn.Embedding(notes, size)
        self.place = nn.Parameter(0.1 * torch.randn(12, size))
        layer = nn.TransformerEncoderLayer(size, 4, 64, dropout=0.0, batch_first=True)
        self.listen = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.judge = nn.Linear(size, 2)

    def forward(self, melody):
        heard = self.listen(self.notes(melody) + self.place)
        return self.judge(heard.mean(1))


def melodies(n):
    melody = torch.randint(0, 12, (n, 12))
    again = torch.rand(n) < 0.5
    melody[again, 6:] = melody[again, :6]
    return TensorDataset(melody, again.long())


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    loader = DataLoader(melodies(3200), batch_size=64, shuffle=True)
    held_out = melodies(512)
    model = Listener()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        model.train()
        for melody, again in loader:
            loss = nn.functional.cross_entropy(model(melody), again)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            melody, again = held_out.tensors
            right = (model(melody).argmax(1) == again).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} right {right:.3f}", flush=True)


if __name__ == "__main__":
    main()
