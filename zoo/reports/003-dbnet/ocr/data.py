"""Synthetic pages with lines of text, their probability and threshold maps on disk, and the dataset that reads them."""

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

SHRINK = 1  # pixels by which a line is smaller in its probability map
BORDER = 2  # pixels on both sides of a line's edge in which the threshold map rises
T_MIN, T_MAX = 0.3, 0.7


def write_pages(root: Path, config, split: str, count: int, rng: np.random.Generator) -> None:
    """Images and boxes as `images/*.npy`, maps as `maps/*.npz`."""
    for kind in ("images", "maps"):
        (root / split / kind).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        image, boxes = draw_page(config.data.side, rng)
        np.save(root / split / "images" / f"{number:05d}.npy", image)
        prob, thresh, mask = draw_maps(config.data.side, boxes)
        np.savez(root / split / "maps" / f"{number:05d}.npz", boxes=boxes, prob_map=prob, thresh_map=thresh, thresh_mask=mask)


def draw_page(side: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Up to four lines of strokes on an uneven ground, and smudges that are no text."""
    image = rng.normal(0.5, 0.08, (side, side)) + np.linspace(*rng.uniform(-0.2, 0.2, 2), side)[:, None]
    boxes: list[tuple[int, int, int, int]] = []
    for _ in range(12):
        height, width = int(rng.integers(6, 10)), int(rng.integers(14, 30))
        top, left = int(rng.integers(1, side - height - 1)), int(rng.integers(1, side - width - 1))
        apart = (top > b[2] + 2 or top + height + 2 < b[0] or left > b[3] + 2 or left + width + 2 < b[1] for b in boxes)
        if len(boxes) < 4 and all(apart):
            boxes.append((top, left, top + height, left + width))
    for top, left, bottom, right in boxes:
        strokes = rng.random(right - left) < 0.5
        ink = rng.uniform(0.25, 0.6) * rng.choice([-1, 1])
        image[top:bottom, left:right] += ink * strokes * (rng.random((bottom - top, right - left)) < 0.85)
    for top, left in rng.integers(0, side - 8, (2, 2)):
        image[top : top + 6, left : left + 6] += rng.uniform(-0.4, 0.4)
    return image.astype(np.float32)[None], np.array(boxes, dtype=np.int64)


def draw_maps(side: int, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P is 1 inside the shrunk line; T rises from 0.3 to 0.7 towards its edge; the mask tells where T counts."""
    prob = np.zeros((1, side, side), np.float32)
    thresh = np.full((1, side, side), T_MIN, np.float32)
    mask = np.zeros((1, side, side), np.float32)
    rows, columns = np.mgrid[:side, :side]
    for top, left, bottom, right in boxes:
        prob[0, top + SHRINK : bottom - SHRINK, left + SHRINK : right - SHRINK] = 1
        inside = np.minimum.reduce([rows - top, bottom - 1 - rows, columns - left, right - 1 - columns])
        near = np.clip(1 - np.abs(inside) / (BORDER + 1), 0, 1)
        thresh[0] = np.maximum(thresh[0], T_MIN + (T_MAX - T_MIN) * near)
        mask[0] = np.maximum(mask[0], inside > -BORDER - 1)
    return prob, thresh, mask


class PageDataset(Dataset):
    def __init__(self, folder: Path, load_maps: bool):
        self.images = sorted((folder / "images").glob("*.npy"))
        self.load_maps = load_maps
        self.cache: dict[int, dict[str, torch.Tensor]] = {}

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        if index not in self.cache:
            self.cache[index] = self.read(self.images[index])
        return self.cache[index]

    def read(self, path: Path) -> dict[str, torch.Tensor]:
        image = torch.from_numpy(np.load(path))
        with np.load(path.parent.parent / "maps" / f"{path.stem}.npz") as stored:
            if self.load_maps:
                maps = stored["prob_map"], stored["thresh_map"], stored["thresh_mask"]
            else:
                maps = draw_maps(image.shape[-1], stored["boxes"])
        prob, thresh, mask = map(torch.from_numpy, maps)
        return {"image": image, "prob_map": prob, "thresh_map": thresh, "thresh_mask": mask}
