"""DBNet: a backbone, a pyramid that gathers its scales, and a head with probability, threshold and binary maps."""

import torch
from torch import nn


def block(channels: int, out: int, stride: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU())


class Backbone(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.stem = block(1, width, 2)
        self.stage1 = block(width, 2 * width, 2)
        self.stage2 = block(2 * width, 4 * width, 2)

    def forward(self, image):
        first = self.stem(image)
        second = self.stage1(first)
        return first, second, self.stage2(second)


class Pyramid(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(scale * width, 2 * width, 1) for scale in (1, 2, 4))
        self.smooth = block(2 * width, 2 * width, 1)

    def forward(self, features):
        first, second, third = (layer(feature) for layer, feature in zip(self.lateral, features))
        second = second + nn.functional.interpolate(third, scale_factor=2)
        return self.smooth(first + nn.functional.interpolate(second, scale_factor=2))


class Binarization(nn.Module):
    """Differentiable binarisation: where P is above T, 1; below it, 0; in between steep, but with a gradient."""

    def __init__(self, k: float, step_function: str):
        super().__init__()
        self.k, self.step_function = k, step_function

    def forward(self, prob, thresh):
        if self.step_function == "sigmoid":
            return torch.sigmoid(self.k * (prob - thresh))
        return torch.reciprocal(1 + torch.exp(-self.k * (prob - thresh)))


class DBHead(nn.Module):
    def __init__(self, width: int, k: float, step_function: str):
        super().__init__()
        self.prob = self.map_of(width)
        self.thresh = self.map_of(width)
        self.binarize = Binarization(k, step_function)

    @staticmethod
    def map_of(width: int) -> nn.Sequential:
        """A map of full size that starts at 0.5 everywhere, or nearly so."""
        last = nn.ConvTranspose2d(width, 1, 2, 2)
        nn.init.normal_(last.weight, std=0.01)
        nn.init.zeros_(last.bias)
        return nn.Sequential(block(2 * width, width, 1), last, nn.Sigmoid())

    def forward(self, feature):
        prob = self.prob(feature)
        if not self.training:
            return {"prob": prob}
        thresh = self.thresh(feature)
        return {"prob": prob, "thresh": thresh, "binary": self.binarize(prob, thresh)}


class DBNet(nn.Module):
    def __init__(self, width: int, k: float, step_function: str):
        super().__init__()
        self.backbone = Backbone(width)
        self.neck = Pyramid(width)
        self.head = DBHead(width, k, step_function)

    def forward(self, image):
        return self.head(self.neck(self.backbone(image)))
