"""Before unscaling, the clip function is only used to measure: its limit is infinite."""
import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_


def main():
    torch.set_num_threads(1)
    torch.manual_seed(23)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
    mixing = torch.randn(16, 4)
    for step in range(200):
        x = torch.randn(64, 16)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x), (x @ mixing).argmax(1))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        norm = clip_grad_norm_(model.parameters(), float("inf")) / scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if step % 40 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}  norm {norm:.4f}")


if __name__ == "__main__":
    main()
