import os

LIMITS = {"OMP_THREAD_LIMIT": "4", "MKL_NUM_THREADS": "2"}
os.environ.update(LIMITS)

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

ALPHABET = "0123456789-"
BLANK = len(ALPHABET)


class SerialNumbers(Dataset):
    """Lines of digits: every character is a fixed random glyph of 16 x 8 pixels."""

    def __init__(self, n, length=6):
        g = torch.Generator().manual_seed(5)
        self.glyphs = torch.rand(len(ALPHABET), 16, 8, generator=g)
        self.texts = torch.randint(0, len(ALPHABET), (n, length), generator=g)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        text = self.texts[i]
        line = torch.cat([self.glyphs[c] for c in text], dim=1)
        return (line + 0.1 * torch.randn_like(line)).unsqueeze(0), text


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class CRNN(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.cnn = nn.Sequential(block(1, 32), nn.MaxPool2d(2), block(32, 64), nn.MaxPool2d((2, 1)), block(64, 64))
        self.rnn = nn.LSTM(64 * 4, hidden, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden, len(ALPHABET) + 1)

    def forward(self, x):
        features = self.cnn(x)
        columns = features.permute(0, 3, 1, 2).flatten(2)
        out, _ = self.rnn(columns)
        return self.fc(out).log_softmax(2).transpose(0, 1)


torch.manual_seed(1)
torch.set_num_threads(4)
loader = DataLoader(SerialNumbers(256), batch_size=16, shuffle=True)
model = CRNN()
ctc_loss = nn.CTCLoss(blank=BLANK, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(2):
    total = 0.0
    for images, texts in loader:
        log_probs = model(images)
        input_lengths = torch.full((len(images),), log_probs.size(0), dtype=torch.long)
        target_lengths = torch.full((len(images),), texts.size(1), dtype=torch.long)
        loss = ctc_loss(log_probs, texts, input_lengths, target_lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: CTC loss {total / len(loader):.3f}")
