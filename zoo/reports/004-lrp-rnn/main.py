"""Trains a hand-written RNN and explains its answers with layer-wise relevance: python main.py [--opts KEY VALUE ...]"""

import argparse
from pathlib import Path

from config import Config
from train import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default=str(Path(__file__).with_name("config.yaml")))
    parser.add_argument("--opts", nargs="*", default=[], metavar="KEY VALUE")
    args = parser.parse_args()
    run(Config.load(args.config, args.opts))


if __name__ == "__main__":
    main()
