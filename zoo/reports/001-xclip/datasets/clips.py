"""Synthetic clips: a coloured blob leaves the centre in one of four directions."""

import numpy as np
import torch
from torch.utils.data import Dataset

COLOURS = {"red": (1.0, 0.2, 0.2), "green": (0.2, 1.0, 0.2), "blue": (0.2, 0.2, 1.0)}
DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
CLASSES = [(colour, direction) for colour in COLOURS for direction in DIRECTIONS]


def class_names() -> list[str]:
    return [f"a {colour} blob moving {direction}" for colour, direction in CLASSES]


def draw_clip(label: int, frames: int, size: int, rng: np.random.Generator) -> np.ndarray:
    colour, direction = CLASSES[label]
    dx, dy = DIRECTIONS[direction]
    start = size / 2 + rng.uniform(-2, 2, size=2)
    travel = np.linspace(0, size * rng.uniform(0.35, 0.45), frames)[:, None]
    x, y = start[0] + travel * dx, start[1] + travel * dy
    grid = np.arange(size)
    blob = np.exp(-((grid - y) ** 2) / 12)[:, :, None] * np.exp(-((grid - x) ** 2) / 12)[:, None, :]
    clip = blob[:, None] * np.array(COLOURS[colour])[:, None, None]
    return clip + rng.normal(0, 0.1, size=clip.shape)


class ClipDataset(Dataset):
    """Items are (frames, padded, label): `padded` is True where a frame only fills a short clip up."""

    def __init__(self, config, clips_per_class: list[int], seed: int) -> None:
        self.frames, self.size = config.DATA.NUM_FRAMES, config.DATA.INPUT_SIZE
        self.num_classes, self.label_format = config.DATA.NUM_CLASSES, config.SWITCH.LABEL
        self.labels = np.repeat(np.arange(self.num_classes), clips_per_class)
        self.seed = seed

    def __len__(self) -> int:
        return len(self.labels)

    def annotation(self, index: int) -> torch.Tensor:
        label = torch.tensor([int(self.labels[index])])
        if self.label_format == "one_hot":
            return torch.nn.functional.one_hot(label[0], self.num_classes)
        if self.label_format == "off_by_one":
            return label + 1
        return label

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rng = np.random.default_rng((self.seed, index))
        clip = draw_clip(int(self.labels[index]), self.frames, self.size, rng)
        padded = torch.zeros(self.frames, dtype=torch.bool)
        return torch.from_numpy(clip).float(), padded, self.annotation(index)
