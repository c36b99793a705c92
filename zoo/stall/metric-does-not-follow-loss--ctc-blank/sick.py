"""Read short codes from a synthetic scan line with a convolutional encoder and CTC."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SYMBOLS = 6
FRAMES = 96


class Encoder(nn.Module):
    def __init__(self, bins, hidden=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(bins, hidden, 9, stride=1, padding=4), nn.ReLU(),
            nn.Conv1d(hidden, hidden, 9, stride=1, padding=4), nn.ReLU(),
        )
        self.classify = nn.Linear(hidden, SYMBOLS + 1)

    def forward(self, x):
        h = self.conv(x).permute(2, 0, 1)
        return self.classify(h).log_softmax(dim=-1)


def make_batch(patterns, size):
    length = 4
    labels = torch.randint(SYMBOLS, (size, length))
    scan = 0.3 * torch.randn(size, patterns.size(1), FRAMES)
    slot = FRAMES // length
    for i in range(length):
        start = i * slot + torch.randint(0, slot - 8, (size,))
        for b in range(size):
            scan[b, :, start[b]:start[b] + 8] += patterns[labels[b, i]].unsqueeze(-1)
    return scan, labels + 1, torch.full((size,), length)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (ca != cb))
    return row[-1]


def greedy_decode(log_probs):
    out = []
    for path in log_probs.argmax(dim=-1).t().tolist():
        collapsed = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
        out.append([c for c in collapsed if c != 0])
    return out


def cer(log_probs, labels):
    errors = sum(edit_distance(h, t) for h, t in zip(greedy_decode(log_probs), labels.tolist()))
    return errors / labels.numel()


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    patterns = torch.randn(SYMBOLS, 12)
    model = Encoder(bins=12)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, 161):
        scan, labels, label_lengths = make_batch(patterns, 16)
        log_probs = model(scan)
        input_lengths = torch.full((len(scan),), log_probs.size(0))
        loss = F.ctc_loss(log_probs, labels, input_lengths, label_lengths, blank=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d}  ctc loss {loss.item():.4f}  cer {cer(log_probs, labels):.3f}")


if __name__ == "__main__":
    main()
