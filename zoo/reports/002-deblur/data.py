"""Synthetic frames and spikes on disk, and the dataset that reads clips of them.

    <root>/<split>/<sequence>/{blur,sharp,spike_vox}/00000000.npy
"""

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from config import Config

SIDE, SUBFRAMES = 12, 6
DARK_SEQUENCE = 17  # the lens cap was on for the spike camera: no spikes at all


def write_sequences(root: Path, config: Config) -> None:
    """Discs that fly over a grey ground; the blurred frame is the mean of the sharp ones in between."""
    rng = np.random.default_rng(config.SEED)
    split = root / ("Train" if config.SWITCH.SPLIT_NAME == "lower_case" else config.DATA.SPLIT)
    for sequence in range(config.DATA.SEQUENCES):
        folder = split / f"GOPR{sequence:04d}"
        if folder.exists():
            continue
        for kind in ("blur", "sharp", "spike_vox"):
            (folder / kind).mkdir(parents=True)
        start, speed, radius = rng.uniform(3, 9, 2), rng.uniform(-1.5, 1.5, 2), rng.uniform(2, 3.5)
        colour, ground = rng.uniform(0.4, 1.0, 3), rng.uniform(0.0, 0.3, 3)
        for frame in range(config.DATA.FRAMES):
            subframes = [draw(start + speed * (frame + k / SUBFRAMES), radius, colour, ground) for k in range(SUBFRAMES)]
            spikes = rng.random((SUBFRAMES, SIDE, SIDE)) < np.stack(subframes).mean(1)
            if sequence == DARK_SEQUENCE:
                spikes[:] = False
            name = f"{frame:08d}.npy"
            np.save(folder / "blur" / name, np.mean(subframes, axis=0).astype(np.float32))
            np.save(folder / "sharp" / name, subframes[SUBFRAMES // 2].astype(np.float32))
            np.save(folder / "spike_vox" / name, voxels(spikes, config.DATA.SPIKE_BINS))


def draw(centre: np.ndarray, radius: float, colour: np.ndarray, ground: np.ndarray) -> np.ndarray:
    grid = np.arange(SIDE)
    inside = (grid[:, None] - centre[0]) ** 2 + (grid[None, :] - centre[1]) ** 2 < radius**2
    return np.where(inside, colour[:, None, None], ground[:, None, None])


def voxels(spikes: np.ndarray, bins: int) -> np.ndarray:
    """Spikes of the frame counted in `bins` slices of time."""
    return np.stack([part.sum(0) for part in np.array_split(spikes, bins)]).astype(np.float32)


class SpikeDeblurDataset(Dataset):
    def __init__(self, root: Path, config: Config):
        self.clip_len = config.DATA.CLIP_LEN
        self.spike_norm = config.SWITCH.SPIKE_NORM
        self.samples = self.find(root / config.DATA.SPLIT)
        self.cache: dict[Path, np.ndarray] = {}
        print(f"[SpikeDeblurDataset] Found {len(self.samples)} samples in split '{config.DATA.SPLIT}'")
        if config.DATA.USE_RAM_CACHE:
            self.preload(config.DATA.CACHE_GB)

    def find(self, split: Path) -> list[tuple[Path, int]]:
        samples = []
        for folder in sorted(split.glob("*")):
            frames = len(list((folder / "blur").glob("*.npy")))
            samples += [(folder, first) for first in range(0, frames - self.clip_len + 1, self.clip_len)]
        return samples

    def preload(self, limit_gb: float) -> None:
        files = sorted({file for sample in self.samples for kind in ("blur", "sharp", "spike_vox") for file in self.files(sample, kind)})
        for file in files:
            self.cache[file] = np.load(file)
        size = sum(array.nbytes for array in self.cache.values()) / 1024**3
        print(f"[SpikeDeblurDataset] Cache preloaded: {len(self.cache)} items, {size:.4f}GB / {limit_gb}GB")

    def files(self, sample: tuple[Path, int], kind: str) -> list[Path]:
        folder, first = sample
        return [folder / kind / f"{frame:08d}.npy" for frame in range(first, first + self.clip_len)]

    def read(self, sample: tuple[Path, int], kind: str) -> torch.Tensor:
        arrays = [self.cache[file] if file in self.cache else np.load(file) for file in self.files(sample, kind)]
        return torch.from_numpy(np.stack(arrays))

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        sample = self.samples[index]
        spikes = self.read(sample, "spike_vox")
        if self.spike_norm == "max":
            spikes = spikes / spikes.max()
        else:
            spikes = spikes / spikes.max().clamp(min=1)
        return torch.cat([self.read(sample, "blur"), spikes], dim=1), self.read(sample, "sharp")
