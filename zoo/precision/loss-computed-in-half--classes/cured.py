import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(40)
generator = torch.Generator().manual_seed(40)
centres = 2 * torch.randn(30, 12, generator=generator)
labels = torch.randint(0, 30, (1500,), generator=generator)
loader = DataLoader(TensorDataset(centres[labels] + torch.randn(1500, 12, generator=generator), labels), batch_size=50, shuffle=True)

net = nn.Sequential(nn.Linear(12, 96), nn.GELU(), nn.Linear(96, 30))
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(5):
    for features, target in loader:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = net(features)
        loss = criterion(logits.float(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
