"""fp16 autocast; the scaler only scales, the program divides, looks for Inf and steps itself."""
import torch
import torch.nn as nn


def main():
    torch.set_num_threads(1)
    torch.manual_seed(16)
    model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    for step in range(300):
        x = torch.rand(64, 6)
        y = (x[:, :1] * x[:, 1:2] - x[:, 2:3]).abs()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        for parameter in model.parameters():
            parameter.grad.div_(scaler.get_scale())
        if all(torch.isfinite(parameter.grad).all() for parameter in model.parameters()):
            optimizer.step()
        if step % 60 == 0:
            print(f"step {step:3d}  loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
