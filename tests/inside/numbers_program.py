"""Trains one of each kind and prints every number to the bit: losses, weights, the state of the random generators."""

import hashlib
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

STEPS = 12
graphs = 0


def digest(tensors):
    return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()[:16]


def finish(name, losses, model):
    print(name, *(loss.hex() for loss in losses))
    print(name, "weights", digest(model.state_dict().values()), "random", digest([torch.get_rng_state()]), random.random().hex())


def mlp():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    losses = []
    for _ in range(STEPS):
        x = torch.randn(16, 8)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    finish("mlp", losses, model)


def cnn():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    losses = []
    for step in range(STEPS):
        model.train()
        optimizer.zero_grad()
        for _ in range(2):
            loss = criterion(model(torch.randn(6, 1, 8, 8)), torch.randint(0, 3, (6,))) / 2
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
        if step % 4 == 3:
            model.eval()
            with torch.no_grad():
                losses.append(criterion(model(torch.randn(6, 1, 8, 8)), torch.randint(0, 3, (6,))).item())
    finish("cnn", losses, model)


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(17, 16)
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True), 2)
        self.head = nn.Linear(16, 17)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.blocks(self.embed(tokens), mask=mask, is_causal=True))


def transformer():
    model = Writer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    losses = []
    for _ in range(STEPS):
        tokens = torch.randint(0, 17, (4, 9))
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    finish("transformer", losses, model)


class Noisy(Dataset):
    """Each sample draws from the worker's own generators."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.randn(4) + random.random(), torch.tensor(float(index % 2))


def workers():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=2)
    losses = []
    for _ in range(2):
        for x, y in loader:
            loss = F.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    finish("workers", losses, model)


def autocast():
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(STEPS):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(torch.randn(8, 8)), torch.randint(0, 4, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    finish("autocast", losses, model)


def counting(graph, _):
    global graphs
    graphs += 1
    return graph.forward


def compiled():
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 4))
    model(torch.randn(2, 8)).sum()  # an eager call comes first, as it does in many programs
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    @torch.compile(fullgraph=True, backend=counting)
    def objective(x, y):
        hidden = model(x)
        return F.cross_entropy(hidden, y) + 0.1 * (hidden - hidden.detach().mean()).pow(2).mean()

    fast = torch.compile(Writer(), fullgraph=True, backend=counting)
    losses = []
    for _ in range(STEPS):
        loss = objective(torch.randn(8, 8), torch.randint(0, 4, (8,)))
        loss = loss + fast(torch.randint(0, 17, (2, 6))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    finish("compiled", losses, model)
    print("graphs", graphs)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(5)
    random.seed(5)
    for part in (mlp, cnn, transformer, workers, autocast, compiled):
        part()
