"""Writes down the tones of short whistled signals with a recurrent network and CTC."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TONES, BINS, FRAMES, EACH = 10, 12, 40, 3


class Whistles(Dataset):
    """Each tone lasts four to eight frames and is followed by a pause of a few."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        colours = torch.randn(TONES, BINS, generator=torch.Generator().manual_seed(50))
        self.signals = 0.5 * torch.randn(count, FRAMES, BINS, generator=generator)
        self.tones = torch.randint(1, TONES + 1, (count, EACH), generator=generator)
        lengths = torch.randint(4, 9, (count, EACH), generator=generator)
        pauses = torch.randint(1, 5, (count, EACH), generator=generator)
        for signal, *lines in zip(self.signals, self.tones.tolist(), lengths.tolist(), pauses.tolist()):
            at = 0
            for tone, length, pause in zip(*lines):
                at += pause
                signal[at:at + length] += colours[tone - 1]
                at += length

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, i):
        return self.signals[i], self.tones[i]


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(BINS, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, TONES + 1)

    def forward(self, signals):
        hidden, _ = self.rnn(signals)
        return self.out(hidden).log_softmax(dim=2)


def heard(path):
    return [tone for i, tone in enumerate(path) if tone and (i == 0 or tone != path[i - 1])]


@torch.no_grad()
def share_right(model, loader):
    model.eval()
    right = 0
    for signals, tones in loader:
        paths = model(signals).argmax(dim=2).tolist()
        right += sum(heard(path) == answer for path, answer in zip(paths, tones.tolist()))
    model.train()
    return right / len(loader.dataset)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(31)
    train_loader = DataLoader(Whistles(800, 32), batch_size=32, shuffle=True)
    test_loader = DataLoader(Whistles(200, 33), batch_size=100)
    model = Listener()
    criterion = nn.CTCLoss(blank=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(12):
        total = 0.0
        for signals, tones in train_loader:
            log_probs = model(signals).transpose(0, 1)
            loss = criterion(log_probs, tones, torch.full((len(tones),), FRAMES), torch.full((len(tones),), EACH))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch:2d}: loss {total / len(train_loader):.4f}, signals right {share_right(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
