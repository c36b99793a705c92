"""Tells from the visits of a patient whether a treatment was begun: short histories of codes, padded to one length."""
import torch
from torch import nn

CODES, LONGEST, WIDTH, EPOCHS, BATCH = 30, 18, 24, 8, 40


def histories(count, generator):
    rows, begun = [], []
    for _ in range(count):
        length = int(torch.randint(4, 16, (1,), generator=generator))
        codes = torch.randint(1, CODES, (length,), generator=generator)
        rows.append(codes)
        begun.append(int(((codes % 7) == 3).any()))
    return rows, torch.tensor(begun)


def collate(rows):
    codes = torch.stack([nn.functional.pad(row, (0, LONGEST - len(row))) for row in rows])
    return {"codes": codes, "attention_mask": (codes > 0).long()}


class Visits(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(CODES, WIDTH, padding_idx=0)
        self.question = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.answer = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, codes, attention_mask):
        hidden = self.codes(codes)
        asked = self.question.expand(len(codes), -1, -1)
        seen, _ = self.answer(asked, hidden, hidden, key_padding_mask=attention_mask.bool())
        return self.out(seen.squeeze(1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    rows, begun = histories(2000, generator)
    fresh, answers = histories(500, generator)
    model = Visits()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(EPOCHS):
        order, losses = torch.randperm(len(rows), generator=generator), []
        for part in order.split(BATCH):
            batch = collate([rows[index] for index in part])
            loss = nn.functional.cross_entropy(model(**batch), begun[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")
    with torch.no_grad():
        print(f"right: {(model(**collate(fresh)).argmax(1) == answers).float().mean():.3f}")


if __name__ == "__main__":
    main()
