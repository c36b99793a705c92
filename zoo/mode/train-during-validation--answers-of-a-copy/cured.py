"""Tell minerals by their spectra; a slow average of the weights is what will be shipped, so it is what is validated."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
torch.set_num_threads(1)
LINES = torch.randn(6, 40, generator=torch.Generator().manual_seed(8))


def spectra_of(count, seed):
    chance = torch.Generator().manual_seed(seed)
    minerals = torch.arange(6).repeat_interleave(count)
    brightness = 1.0 + 0.5 * torch.randn(len(minerals), 1, generator=chance)
    return TensorDataset(LINES[minerals] * brightness + torch.randn(len(minerals), 40, generator=chance), minerals)


net = nn.Sequential(nn.Linear(40, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64, bias=False), nn.BatchNorm1d(64),
                    nn.ReLU(), nn.Linear(64, 6))  # fmt: skip
average = copy.deepcopy(net).requires_grad_(False).eval()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
train = DataLoader(spectra_of(100, 1), 50, shuffle=True, drop_last=True)
held_out = DataLoader(spectra_of(40, 2), 40)
for epoch in range(8):
    net.train()
    for spectra, minerals in train:
        loss = nn.functional.cross_entropy(net(spectra), minerals)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.state_dict().values(), net.state_dict().values()):
                slow.copy_(0.9 * slow + 0.1 * fast)
    net.eval()
    with torch.no_grad():
        right = 0
        for spectra, minerals in held_out:
            guess = average(spectra).argmax(1)
            right += int((guess == minerals).sum())
    print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy of the average {right / 240:.3f}")
