"""CTC on synthetic strokes: a long blank phase with a flat error rate, then the network really reads."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

ALPHABET = "abcdef"


class Lines(Dataset):
    """Each letter is a noisy 8-dimensional column drawn over 2 to 4 frames, with gaps between letters."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        glyphs = torch.randn(len(ALPHABET), 8, generator=torch.Generator().manual_seed(123)) * 1.5
        self.samples = []
        for _ in range(n):
            target = torch.randint(1, len(ALPHABET) + 1, (int(torch.randint(2, 6, (1,), generator=g)),), generator=g)
            frames = []
            for letter in target.tolist():
                frames += [torch.zeros(8)] * int(torch.randint(1, 3, (1,), generator=g))
                frames += [glyphs[letter - 1]] * int(torch.randint(2, 5, (1,), generator=g))
            x = torch.stack(frames)
            self.samples.append((x + 0.3 * torch.randn(x.shape, generator=g), target))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


def collate(batch):
    xs, ys = zip(*batch)
    return (nn.utils.rnn.pad_sequence(xs), torch.cat(ys),
            torch.tensor([len(x) for x in xs]), torch.tensor([len(y) for y in ys]))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 32, bidirectional=True)
        self.fc = nn.Linear(64, len(ALPHABET) + 1)

    def forward(self, x):
        return self.fc(self.rnn(x)[0]).log_softmax(-1)


def decode(log_probs, lengths):
    out = []
    for path, n in zip(log_probs.argmax(-1).T.tolist(), lengths.tolist()):
        path = path[:n]
        out.append([p for i, p in enumerate(path) if p != 0 and (i == 0 or p != path[i - 1])])
    return out


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (ca != cb))
    return row[-1]


@torch.no_grad()
def character_error_rate(model, loader):
    model.eval()
    errors = total = 0
    for x, y, x_len, y_len in loader:
        for hyp, ref in zip(decode(model(x), x_len), y.split(y_len.tolist())):
            errors += edit_distance(hyp, ref.tolist())
            total += len(ref)
    return errors / total


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train_loader = DataLoader(Lines(640, 0), batch_size=32, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(Lines(100, 1), batch_size=50, collate_fn=collate)
    model = Reader()
    ctc_loss = nn.CTCLoss(blank=0, zero_infinity=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    for epoch in range(8):
        model.train()
        running = 0.0
        for x, y, x_len, y_len in train_loader:
            loss = ctc_loss(model(x), y, x_len, y_len)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            running += loss.item()
        cer = character_error_rate(model, val_loader)
        print(f"epoch {epoch} | loss {running / len(train_loader):.4f} | CER {cer:.3f}")


if __name__ == "__main__":
    main()
