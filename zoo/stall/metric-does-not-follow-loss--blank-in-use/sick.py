"""Line recogniser for a seven-letter alphabet: CNN, GRU, CTC; history goes to a CSV file."""
import csv
import os
import random
import tempfile

import torch
import torch.nn as nn

ALPHABET = " etaoin"
CHAR_TO_ID = {c: i for i, c in enumerate(ALPHABET)}
ID_TO_CHAR = {i: c for c, i in CHAR_TO_ID.items()}
CLASSES = len(ALPHABET) + 1
GLYPH = 6


def random_text(rng, length=8):
    text = rng.choice(ALPHABET[1:])
    while len(text) < length:
        last = text[-1]
        text += rng.choice([c for c in ALPHABET[1:] if c != last] if last == " " else " " * 4 + ALPHABET[1:].replace(last, ""))
    return text


def render(text, font):
    columns = torch.cat([font[ALPHABET.index(c)] for c in text], dim=1)
    return columns + 0.2 * torch.randn_like(columns)


class Recogniser(nn.Module):
    def __init__(self, height):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv1d(height, 32, 5, stride=2, padding=2), nn.ReLU())
        self.gru = nn.GRU(32, 32, bidirectional=True)
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, images):
        h = self.cnn(images).permute(2, 0, 1)
        h, _ = self.gru(h)
        return self.fc(h)


def decode(logits):
    texts = []
    for path in logits.argmax(2).t():
        ids = torch.unique_consecutive(path).tolist()
        texts.append("".join(ID_TO_CHAR[i] for i in ids if i != 0))
    return texts


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diag, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diag, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diag + (x != y))
    return row[-1]


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    rng = random.Random(6)
    font = torch.randn(len(ALPHABET), 8, GLYPH)
    model = Recogniser(height=8)
    ctc = nn.CTCLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    path = os.path.join(tempfile.mkdtemp(prefix="lines-"), "history.csv")
    with open(path, "w", newline="") as f:
        log = csv.writer(f)
        log.writerow(["step", "loss", "cer"])
        for step in range(1, 141):
            texts = [random_text(rng) for _ in range(16)]
            images = torch.stack([render(t, font) for t in texts])
            targets = torch.tensor([[CHAR_TO_ID[c] for c in t] for t in texts])
            logits = model(images)
            frames = torch.full((16,), logits.size(0), dtype=torch.long)
            lengths = torch.full((16,), targets.size(1), dtype=torch.long)
            loss = ctc(logits.log_softmax(2), targets, frames, lengths)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            if step % 10 == 0:
                errors = sum(distance(h, t) for h, t in zip(decode(logits), texts))
                cer = errors / sum(map(len, texts))
                log.writerow([step, loss.item(), cer])
                if step % 20 == 0:
                    print(f"step {step} loss {loss.item():.4f} cer {cer:.3f}")


if __name__ == "__main__":
    main()
