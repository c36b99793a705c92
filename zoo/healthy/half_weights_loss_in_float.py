"""model.half() trained by SGD with a loss in 32 bit: gradients are large enough for fp16, and each step moves the weights."""
import torch
import torch.nn as nn


def main():
    torch.set_num_threads(1)
    torch.manual_seed(20)
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 6)).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    centres = torch.randn(6, 10)
    for step in range(200):
        y = torch.randint(0, 6, (32,))
        x = centres[y] + 0.8 * torch.randn(32, 10)
        loss = nn.functional.cross_entropy(model(x.half()).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
