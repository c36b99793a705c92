"""Synthetic text lines: glyphs of a 5x7 bitmap alphabet, scaled, slanted, jittered and drowned in noise. Only numpy."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

HEIGHT, WIDTH = 16, 96
SHORTEST, LONGEST = 4, 8

BITMAPS = {
    "0": "0E 11 13 15 19 11 0E", "1": "04 0C 04 04 04 04 0E", "2": "0E 11 01 02 04 08 1F", "3": "1F 02 04 02 01 11 0E",
    "4": "02 06 0A 12 1F 02 02", "5": "1F 10 1E 01 01 11 0E", "6": "06 08 10 1E 11 11 0E", "7": "1F 01 02 04 08 08 08",
    "8": "0E 11 11 0E 11 11 0E", "9": "0E 11 11 0F 01 02 0C", "A": "0E 11 11 11 1F 11 11", "B": "1E 11 11 1E 11 11 1E",
    "C": "0E 11 10 10 10 11 0E", "D": "1C 12 11 11 11 12 1C", "E": "1F 10 10 1E 10 10 1F", "F": "1F 10 10 1E 10 10 10",
    "G": "0E 11 10 17 11 11 0F", "H": "11 11 11 1F 11 11 11", "J": "07 02 02 02 02 12 0C", "K": "11 12 14 18 14 12 11",
    "L": "10 10 10 10 10 10 1F", "M": "11 1B 15 15 11 11 11", "N": "11 11 19 15 13 11 11", "P": "1E 11 11 1E 10 10 10",
    "R": "1E 11 11 1E 14 12 11", "S": "0F 10 10 0E 01 01 1E", "T": "1F 04 04 04 04 04 04", "U": "11 11 11 11 11 11 0E",
    "V": "11 11 11 11 11 0A 04", "W": "11 11 11 15 15 15 0A", "X": "11 11 0A 04 0A 11 11", "Z": "1F 01 02 04 08 10 1F",
}  # fmt: skip
ALPHABET = "".join(BITMAPS)
BLANK = 0


def glyph(character: str) -> np.ndarray:
    rows = [int(row, 16) for row in BITMAPS[character].split()]
    return np.array([[row >> (4 - column) & 1 for column in range(5)] for row in rows], dtype=np.float32)


GLYPHS = [np.pad(glyph(character), 1) for character in ALPHABET]


def draw(bitmap: np.ndarray, height: int, width: int, slant: float) -> np.ndarray:
    """The padded bitmap resampled to height x width, with its rows pushed sideways by the slant."""
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    y = (rows + 0.5) * 7 / height + 0.5
    x = (columns + 0.5) * 5 / width + 0.5 + slant * (y - 4.5)
    y, x = np.clip(y, 0, 7.99), np.clip(x, 0, 5.99)
    top, left = y.astype(int), x.astype(int)
    dy, dx = y - top, x - left
    above = bitmap[top, left] * (1 - dx) + bitmap[top, left + 1] * dx
    below = bitmap[top + 1, left] * (1 - dx) + bitmap[top + 1, left + 1] * dx
    return above * (1 - dy) + below * dy


def line(rng: np.random.Generator) -> tuple[np.ndarray, list[int]]:
    image = np.zeros((HEIGHT, WIDTH), dtype=np.float32)
    characters = rng.integers(0, len(ALPHABET), rng.integers(SHORTEST, LONGEST + 1))
    slant, x = rng.uniform(-0.2, 0.2), int(rng.integers(1, 6))
    for character in characters:
        height, width = int(rng.integers(10, 14)), int(rng.integers(7, 10))
        y = int(rng.integers(0, HEIGHT - height + 1))
        ink = draw(GLYPHS[character], height, width, slant) * rng.uniform(0.7, 1.0)
        image[y : y + height, x : x + width] = np.maximum(image[y : y + height, x : x + width], ink)
        x += width + int(rng.integers(1, 3))
    image += rng.normal(0, 0.12, image.shape)
    return (image - 0.2) / 0.35, [int(character) + 1 for character in characters]


class TextLines(Dataset):
    def __init__(self, count: int, seed: int):
        rng = np.random.default_rng(seed)
        self.lines = [line(rng) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, list[int]]:
        image, label = self.lines[i]
        return torch.from_numpy(image.astype(np.float32)).unsqueeze(0), label


def collate(batch):
    images, labels = zip(*batch)
    lengths = torch.tensor([len(label) for label in labels])
    return torch.stack(images), torch.tensor([character for label in labels for character in label]), lengths


def build_loaders(config) -> tuple[DataLoader, DataLoader]:
    data, size = config.DATA, config.TRAIN.BATCH_SIZE
    train = TextLines(data.TRAIN_LINES, seed=config.SEED)
    val = TextLines(data.VAL_LINES, seed=10_000 + config.SEED)
    train_loader = DataLoader(train, batch_size=size, shuffle=True, drop_last=True, num_workers=0, collate_fn=collate)
    return train_loader, DataLoader(val, batch_size=100, num_workers=0, collate_fn=collate)
