"""Trains a text detector on synthetic pages: python main.py [trainer.precision=16-mixed] [GROUP.KEY=VALUE ...]"""

import sys
import tempfile
import time
import warnings
from pathlib import Path

import lightning
import numpy as np
import torch
from torch.utils.data import DataLoader

from ocr.config import load
from ocr.data import PageDataset, write_pages
from ocr.lightning_module import OCRModule, build_trainer


def run(config, root: Path) -> None:
    torch.set_num_threads(config.trainer.threads)
    lightning.seed_everything(config.trainer.seed, verbose=False)
    rng = np.random.default_rng(config.trainer.seed)
    write_pages(root, config, "train", config.data.train_images, rng)
    write_pages(root, config, "val", config.data.val_images, rng)
    train, val = (PageDataset(root / split, config.data.load_maps) for split in ("train", "val"))
    module = OCRModule(config)
    began = time.time()
    build_trainer(config).fit(
        module, DataLoader(train, config.data.batch_size, shuffle=True), DataLoader(val, config.data.batch_size)
    )
    print(f"trained in {config.trainer.precision}: hmean {module.hmean.value():.4f} after {time.time() - began:.1f} s", flush=True)


def main() -> None:
    warnings.filterwarnings("ignore", module="lightning")
    config = load(sys.argv[1:])
    if config.data.root:
        run(config, Path(config.data.root))
    else:
        with tempfile.TemporaryDirectory(prefix="dbnet-") as folder:
            run(config, Path(folder))


if __name__ == "__main__":
    main()
