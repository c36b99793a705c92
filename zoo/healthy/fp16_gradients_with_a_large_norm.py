"""Pure float16: each gradient fits, and the norm of all of them together does not; nobody needs that norm in 16 bit."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(64, 4096).half()
target = torch.randn(64, 4096) * 0.3
optimizer = torch.optim.SGD(model.parameters(), lr=8e-7)
for step in range(120):
    x = torch.randn(320, 64)
    wanted = x @ target
    loss = (model(x.half()).float() - wanted).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, f"{loss.item() / wanted.numel():.4f}", f"{model.weight.grad.float().norm().item():.0f}")
