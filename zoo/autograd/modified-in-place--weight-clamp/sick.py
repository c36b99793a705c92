"""Non-negative factors of topic counts."""
import torch
import torch.nn as nn


class Factor(nn.Module):
    def __init__(self, words=40, topics=6):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(words, 32), nn.ReLU(), nn.Linear(32, topics), nn.Softplus())
        self.decode = nn.Linear(topics, words, bias=False)

    def forward(self, x):
        return self.decode(self.encode(x))


torch.manual_seed(1)
torch.set_num_threads(1)
topics = torch.rand(6, 40) * (torch.rand(6, 40) < 0.2)
net = Factor()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for i in range(150):
    counts = torch.rand(64, 6).pow(3) @ topics
    loss = nn.functional.mse_loss(net(counts), counts)
    with torch.no_grad():
        net.decode.weight.clamp_(min=0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 30 == 0:
        print(f"{i:3d} {loss.item():.5f}")
