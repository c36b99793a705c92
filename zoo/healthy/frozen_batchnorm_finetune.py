"""Detection-style fine-tuning: the model is in train mode, only its BatchNorm layers stay in eval."""
import io

import torch
import torch.nn as nn
import torch.optim as optim


def conv_bn(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class TinyResNet(nn.Module):
    def __init__(self, num_classes, freeze_bn=False):
        super().__init__()
        self.stem = conv_bn(3, 12)
        self.layer1 = conv_bn(12, 12)
        self.layer2 = conv_bn(12, 24, stride=2)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(24, num_classes)
        self.freeze_bn = freeze_bn

    def forward(self, x):
        x = self.stem(x)
        x = x + self.layer1(x)
        x = self.layer2(x).mean((2, 3))
        return self.fc(self.drop(x))

    def train(self, mode=True):
        super().train(mode)
        if self.freeze_bn:
            for m in self.modules():
                if isinstance(m, nn.BatchNorm2d):
                    m.eval()
                    m.weight.requires_grad_(False)
                    m.bias.requires_grad_(False)
        return self


def textures(n, classes, seed):
    """Class-specific 3x3 colour patterns, tiled with a random shift."""
    g = torch.Generator().manual_seed(seed)
    tiles = torch.randn(classes, 3, 3, 3, generator=torch.Generator().manual_seed(classes))
    y = torch.randint(0, classes, (n,), generator=g)
    shift = int(torch.randint(0, 3, (1,), generator=g))
    x = tiles[y].repeat(1, 1, 3, 3).roll(shift, dims=3)
    return x + 1.2 * torch.randn(n, 3, 9, 9, generator=g), y


def train(model, x, y, epochs, lr, batch, name):
    params = [p for p in model.parameters() if p.requires_grad]
    opt = optim.SGD(params, lr=lr, momentum=0.9)
    for epoch in range(epochs):
        model.train()
        losses = []
        for idx in torch.randperm(len(x)).split(batch):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
            losses.append(loss.item())
        print(f"{name} epoch {epoch}: loss={sum(losses) / len(losses):.4f}")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(21)
    source = TinyResNet(6)
    train(source, *textures(1200, 6, 0), epochs=3, lr=0.05, batch=40, name="pretrain")
    buffer = io.BytesIO()
    torch.save(source.state_dict(), buffer)
    buffer.seek(0)

    model = TinyResNet(4, freeze_bn=True)
    state = {k: v for k, v in torch.load(buffer, weights_only=True).items() if not k.startswith("fc.")}
    print(model.load_state_dict(state, strict=False))
    model.train()
    train(model, *textures(600, 4, 1), epochs=5, lr=0.01, batch=4, name="finetune")

    model.eval()
    x, y = textures(300, 4, 2)
    with torch.no_grad():
        print("test accuracy", (model(x).argmax(1) == y).float().mean().item())


if __name__ == "__main__":
    main()
