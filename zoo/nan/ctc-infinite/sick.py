"""Digit strings from audio-like frames: bidirectional GRU with CTC."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

DIGITS = 10


class Spoken(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        tones = torch.randn(DIGITS + 1, 12, generator=torch.Generator().manual_seed(99))
        self.items = []
        for k in range(n):
            length = int(torch.randint(2, 6, (1,), generator=g))
            if k == 333:
                length = 30
            digits = torch.randint(1, DIGITS + 1, (length,), generator=g)
            hold = torch.randint(3, 6, (length,), generator=g)
            frames = tones[digits].repeat_interleave(hold, dim=0)[:40]
            self.items.append((frames + 0.3 * torch.randn(frames.shape, generator=g), digits))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    frames, digits = zip(*batch)
    return (nn.utils.rnn.pad_sequence(frames, batch_first=True), torch.cat(digits),
            torch.tensor([len(f) for f in frames]), torch.tensor([len(d) for d in digits]))


class Recogniser(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.down = nn.Conv1d(12, 24, 3, stride=2, padding=1)
        self.rnn = nn.GRU(24, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, DIGITS + 1)

    def forward(self, frames, lengths):
        x = torch.relu(self.down(frames.transpose(1, 2))).transpose(1, 2)
        x, _ = self.rnn(x)
        return self.head(x).log_softmax(-1).transpose(0, 1), (lengths + 1) // 2


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Spoken(600, seed=7), batch_size=20, shuffle=True, collate_fn=collate)
    model = Recogniser()
    criterion = nn.CTCLoss(blank=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        total = 0.0
        for frames, tokens, lengths, token_lengths in loader:
            log_probs, frame_lengths = model(frames, lengths)
            loss = criterion(log_probs, tokens, frame_lengths, token_lengths)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: ctc {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
