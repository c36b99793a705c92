"""Trains a video deblurring net on frames and spikes: python main.py [--config config.yaml] [--opts KEY VALUE ...]"""

import argparse
import tempfile
from pathlib import Path

from config import Config
from train import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default=str(Path(__file__).with_name("config.yaml")))
    parser.add_argument("--opts", nargs="*", default=[], metavar="KEY VALUE")
    args = parser.parse_args()
    config = Config.load(args.config, args.opts)
    if config.DATA.ROOT:
        run(config, Path(config.DATA.ROOT))
    else:
        with tempfile.TemporaryDirectory(prefix="deblur-") as folder:
            run(config, Path(folder))


if __name__ == "__main__":
    main()
