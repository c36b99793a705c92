"""Losses summed over large numbers overflow in fp16 until the scale is far below one; there it stays, and nothing is lost."""
import torch
import torch.nn as nn


def main():
    torch.set_num_threads(1)
    torch.manual_seed(18)
    model = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    direction = torch.randn(8, 1)
    for step in range(240):
        x = torch.randn(128, 8)
        revenue = 900 + 250 * (x @ direction)
        with torch.autocast("cpu", dtype=torch.float16):
            predicted = 400 * model(x)
        loss = (predicted.float() - revenue).square().sum()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if step % 40 == 0:
            print(f"step {step:3d}  rmse {(loss.item() / 128) ** 0.5:.1f}  scale {scaler.get_scale():g}")


if __name__ == "__main__":
    main()
