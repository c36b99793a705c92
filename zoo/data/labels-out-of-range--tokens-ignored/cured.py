"""Next-token language model on arithmetic progressions, padded batches, -100 for positions without a loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

PAD, EOS, VOCAB = 0, 1, 32


def progressions(n):
    rows = []
    for _ in range(n):
        start, stride, length = (int(torch.randint(a, b, (1,))) for a, b in ((0, 30), (1, 4), (6, 16)))
        rows.append([2 + (start + k * stride) % 30 for k in range(length)] + [EOS])
    return rows


def collate(rows, length=18):
    ids = torch.full((len(rows), length), PAD)
    mask = torch.zeros(len(rows), length, dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, :len(row)] = torch.tensor(row)
        mask[i, :len(row)] = 1
    labels = ids.clone()
    labels[mask == 0] = -100
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


class GRULanguageModel(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, VOCAB)

    def forward(self, input_ids, labels=None, **kwargs):
        h, _ = self.rnn(self.embed(input_ids))
        logits = self.lm_head(h)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), labels[:, 1:].reshape(-1))
        return loss, logits


@torch.no_grad()
def next_token_accuracy(model, batch):
    _, logits = model(batch["input_ids"])
    real = batch["attention_mask"][:, 3:] == 1
    hit = logits[:, 2:-1].argmax(-1) == batch["input_ids"][:, 3:]
    return hit[real].float().mean().item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(progressions(1000), batch_size=50, shuffle=True, collate_fn=collate)
    test = collate(progressions(200))
    model = GRULanguageModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(6):
        total = 0.0
        for batch in loader:
            loss, _ = model(**batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        print({"epoch": epoch, "loss": round(total / len(loader), 4)})
    print(f"next-token accuracy {next_token_accuracy(model, test):.3f}")


if __name__ == "__main__":
    main()
