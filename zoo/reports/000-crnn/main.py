"""Trains a text-line reader with CTC: python main.py [--config config.yaml] [--opts KEY VALUE ...]"""

import argparse
import os
from pathlib import Path

from config import Config


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default=str(Path(__file__).with_name("config.yaml")))
    parser.add_argument("--opts", nargs="*", default=[], metavar="KEY VALUE")
    args = parser.parse_args()
    config = Config.load(args.config, args.opts)
    if config.SWITCH.OMP_THREAD_LIMIT:
        os.environ["OMP_THREAD_LIMIT"] = str(config.SWITCH.OMP_THREAD_LIMIT)

    from train import run

    run(config)


if __name__ == "__main__":
    main()
