"""Transcribe tone sequences of varying length with CTC."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TONES = 8
TEMPI = (4, 6, 8, 10)


class ToneSequences(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.bank = torch.randn(TONES, 10, generator=torch.Generator().manual_seed(99))
        self.items = []
        for _ in range(n):
            length = int(torch.randint(3, 13, (1,), generator=g))
            steps = torch.randint(1, TONES, (length,), generator=g)
            tones = steps.cumsum(0) % TONES
            tempo = TEMPI[int(torch.randint(len(TEMPI), (1,), generator=g))]
            frames = self.bank[tones].repeat_interleave(tempo, dim=0)
            frames = frames + 0.2 * torch.randn(frames.shape, generator=g)
            self.items.append((frames, tones + 1))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    frames, tones = zip(*batch)
    x = nn.utils.rnn.pad_sequence(frames, batch_first=True)
    return x, torch.tensor([len(f) for f in frames]), torch.cat(tones), torch.tensor([len(t) for t in tones])


class Transcriber(nn.Module):
    reduction = 8

    def __init__(self, hidden=48):
        super().__init__()
        self.front = nn.Conv1d(10, hidden, kernel_size=2 * self.reduction - 1, stride=self.reduction,
                               padding=self.reduction - 1)
        self.body = nn.Conv1d(hidden, hidden, kernel_size=3, padding=1)
        self.out = nn.Conv1d(hidden, TONES + 1, kernel_size=1)

    def forward(self, x, lengths):
        h = torch.relu(self.front(x.transpose(1, 2)))
        h = torch.relu(self.body(h))
        return self.out(h).permute(2, 0, 1).log_softmax(-1), torch.div(lengths, self.reduction, rounding_mode="floor")


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        diag, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            diag, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diag + (ca != cb))
    return row[-1]


@torch.no_grad()
def error_rate(model, loader):
    errors = total = 0
    for x, x_len, y, y_len in loader:
        log_probs, out_len = model(x, x_len)
        best = log_probs.argmax(-1).t()
        for path, n, truth in zip(best, out_len.tolist(), y.split(y_len.tolist())):
            path = torch.unique_consecutive(path[:n])
            errors += levenshtein(path[path != 0].tolist(), truth.tolist())
            total += len(truth)
    return errors / total


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train = DataLoader(ToneSequences(640, seed=1), batch_size=32, shuffle=True, collate_fn=collate)
    valid = DataLoader(ToneSequences(64, seed=2), batch_size=32, collate_fn=collate)
    model = Transcriber()
    criterion = nn.CTCLoss(blank=0, zero_infinity=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        total = 0.0
        for x, x_len, y, y_len in train:
            log_probs, out_len = model(x, x_len)
            loss = criterion(log_probs, y, out_len, y_len)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"Epoch {epoch + 1}  ctc_loss: {total / len(train):.4f}  CER: {error_rate(model, valid):.3f}")


if __name__ == "__main__":
    main()
