import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, out=6):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(12, 12, 3, stride=2, padding=1)
        self.fc = nn.Linear(12 * 16, out)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return torch.tanh(self.fc(x.flatten(1)))


class Detector(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, classes))

    def forward(self, x):
        return self.head(self.backbone(x))


def synth_images(n, classes, g):
    ys = torch.randint(0, classes, (n,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    angle = ys.float() * torch.pi / classes
    phase = torch.rand(n, generator=g) * 6.28
    wave = torch.cos(angle)[:, None, None] * xx + torch.sin(angle)[:, None, None] * yy
    image = torch.sin(0.9 * wave + phase[:, None, None])
    return image.unsqueeze(1).repeat(1, 3, 1, 1) + 0.3 * torch.randn(n, 3, 16, 16, generator=g), ys


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(8)
    classes = 6
    images, labels = synth_images(1500, classes, g)
    test_images, test_labels = synth_images(500, classes, g)

    model = Detector(classes)
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=3e-3)
    for epoch in range(8):
        model.train()
        for i in torch.randperm(len(images), generator=g).split(50):
            loss = F.cross_entropy(model(images[i]), labels[i])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(test_images).argmax(1) == test_labels).float().mean()
        print("epoch %d loss %.4f test acc %.3f" % (epoch, loss.item(), acc))


if __name__ == "__main__":
    main()
