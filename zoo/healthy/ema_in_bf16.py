"""bf16 autocast, weights in 32 bit, and an average of them that is kept in bfloat16 for evaluation."""
import copy

import torch
import torch.nn as nn


def main():
    torch.set_num_threads(1)
    torch.manual_seed(19)
    model = nn.Sequential(nn.Linear(5, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 2))
    average = copy.deepcopy(model).to(torch.bfloat16).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(220):
        x = torch.randn(64, 5)
        y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).long()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters()):
                slow.lerp_(fast.to(slow.dtype), 0.05)
        if step % 40 == 0:
            with torch.no_grad():
                accuracy = (average(x.to(torch.bfloat16)).argmax(1) == y).float().mean()
            print(f"step {step:3d}  loss {loss.item():.4f}  average's accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
