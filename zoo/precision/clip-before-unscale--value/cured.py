import torch
from torch import nn
from torch.nn.utils import clip_grad_value_
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    """Marks in a sequence of tokens those that lie inside brackets."""

    def __init__(self, vocabulary=20, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.left = nn.Conv1d(width, width, 5, padding=2)
        self.right = nn.Conv1d(width, width, 5, padding=2)
        self.tag = nn.Linear(width, 2)

    def forward(self, tokens):
        h = self.embed(tokens).transpose(1, 2)
        h = torch.relu(self.left(h))
        h = torch.relu(self.right(h))
        return self.tag(h.transpose(1, 2))


class Trainer:
    def __init__(self, net, lr=0.03, clip=0.5):
        self.net, self.clip = net, clip
        self.optimizer = torch.optim.Adagrad(net.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18)
        self.criterion = nn.CrossEntropyLoss()

    def forward_loss(self, tokens, tags):
        with torch.autocast(device_type="cpu", dtype=torch.float16):
            return self.criterion(self.net(tokens).flatten(0, 1), tags.flatten())

    def update(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        clip_grad_value_(self.net.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def fit(self, loader, epochs):
        for epoch in range(1, epochs + 1):
            mean = 0.0
            for tokens, tags in loader:
                loss = self.forward_loss(tokens, tags)
                self.update(loss)
                mean += loss.item() / len(loader)
            print(f"[{epoch}] {mean:.4f}")


def sentences(n, length=24):
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(2, 20, (n, length), generator=generator)
    start = torch.randint(0, length - 5, (n,), generator=generator)
    tokens[torch.arange(n), start] = 0
    tokens[torch.arange(n), start + 4] = 1
    inside = torch.arange(length)[None] - start[:, None]
    tags = ((inside > 0) & (inside < 4)).long()
    slips = torch.rand(tags.shape, generator=generator) < 0.1
    return TensorDataset(tokens, torch.where(slips, 1 - tags, tags))


if __name__ == "__main__":
    torch.manual_seed(5)
    Trainer(Tagger()).fit(DataLoader(sentences(640), batch_size=20, shuffle=True), epochs=4)
