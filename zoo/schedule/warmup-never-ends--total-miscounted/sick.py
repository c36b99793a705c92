"""Text-like classification with AdamW, linear warm-up and linear decay, in the manner of fine-tuning scripts."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

VOCAB, LENGTH, TOPICS = 300, 20, 5


class Documents(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        usage = torch.rand(TOPICS, VOCAB, generator=torch.Generator().manual_seed(1)).pow(3)
        self.labels = torch.randint(TOPICS, (n,), generator=g)
        self.tokens = torch.multinomial(usage[self.labels], LENGTH, replacement=True, generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "label": self.labels[i]}


class TopicModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        nn.init.normal_(self.embed.weight, std=0.02)
        self.attend = nn.Linear(dim, 1)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, TOPICS))

    def forward(self, input_ids):
        h = self.embed(input_ids)
        weights = self.attend(h).softmax(dim=1)
        return self.head((weights * h).sum(dim=1))


def linear_schedule_with_warmup(optimizer, warmup_steps, total_steps):
    def factor(step):
        if step < warmup_steps:
            return step / max(1, warmup_steps)
        return max(0.0, (total_steps - step) / max(1, total_steps - warmup_steps))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    epochs, batch_size = 8, 100
    train_set = Documents(1600, seed=2)
    loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
    model = TopicModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    total_steps = len(train_set) * epochs
    scheduler = linear_schedule_with_warmup(optimizer, int(0.1 * total_steps), total_steps)
    step = 0
    for epoch in range(epochs):
        hits, losses = 0, []
        for batch in loader:
            logits = model(batch["input_ids"])
            loss = F.cross_entropy(logits, batch["label"])
            loss.backward()
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            losses.append(loss.item())
            hits += (logits.argmax(-1) == batch["label"]).sum().item()
        print({"epoch": epoch + 1, "step": step, "loss": round(sum(losses) / len(losses), 4),
               "acc": round(hits / len(train_set), 3), "lr": scheduler.get_last_lr()[0]})


if __name__ == "__main__":
    main()
