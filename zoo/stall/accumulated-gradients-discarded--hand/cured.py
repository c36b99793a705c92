import torch
import torch.nn as nn
import torch.nn.functional as F


class AccumulatingTrainer:
    def __init__(self, net, lr, accumulate):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=lr)
        self.accumulate = accumulate
        self.count = 0

    def clear(self):
        for p in self.net.parameters():
            p.grad = None

    def micro_step(self, x, y):
        if self.count % self.accumulate == 0:
            self.clear()
        loss = F.mse_loss(self.net(x), y)
        (loss / self.accumulate).backward()
        self.count += 1
        if self.count % self.accumulate == 0:
            self.opt.step()
        return loss.item()


def joint_angles(n):
    """Where does a two-joint arm end, given its angles?"""
    angles = torch.rand(n, 2) * 3.0 - 1.5
    a, b = angles[:, 0], angles[:, 0] + angles[:, 1]
    return angles, torch.stack([a.cos() + b.cos(), a.sin() + b.sin()], dim=1)


def main():
    torch.manual_seed(29)
    net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    trainer = AccumulatingTrainer(net, lr=0.1, accumulate=8)
    window = []
    for i in range(1, 1201):
        window.append(trainer.micro_step(*joint_angles(8)))
        if i % 120 == 0:
            print(f"micro-batch {i}: loss {sum(window) / len(window):.4f}")
            window.clear()
    with torch.no_grad():
        x, y = joint_angles(1000)
        print(f"test rmse {F.mse_loss(net(x), y).sqrt().item():.4f}")


if __name__ == "__main__":
    main()
