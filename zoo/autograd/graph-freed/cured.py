"""Character model of a small text, in chunks, with the state carried over."""
import torch
import torch.nn as nn

TEXT = "she sells sea shells by the sea shore and the shells she sells are sea shells for sure " * 40


class CharLSTM(nn.Module):
    def __init__(self, n_chars, hidden=48):
        super().__init__()
        self.emb = nn.Embedding(n_chars, 16)
        self.lstm = nn.LSTM(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n_chars)

    def forward(self, x, hidden=None):
        y, hidden = self.lstm(self.emb(x), hidden)
        return self.out(y), hidden


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    letters = sorted(set(TEXT))
    ids = torch.tensor([letters.index(c) for c in TEXT])
    rows, bptt = 8, 25
    chars = ids[: len(ids) // rows * rows].view(rows, -1)
    model = CharLSTM(len(letters))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(8):
        hidden = None
        for i in range(0, chars.shape[1] - bptt - 1, bptt):
            output, hidden = model(chars[:, i:i + bptt], hidden)
            hidden = tuple(h.detach() for h in hidden)
            target = chars[:, i + 1:i + bptt + 1]
            loss = criterion(output.flatten(0, 1), target.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
