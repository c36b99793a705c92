"""Trains X-CLIP: python main.py --config configs/xclip-12.yaml [--opts KEY VALUE ...]"""

import argparse
import random

import numpy as np
import torch
from torch import nn

from datasets.build import build_dataloader
from datasets.clips import class_names
from models.clip_weights import pretrained_state_dict
from models.model_builder import build_model
from models.parallel import SingleProcess
from models.tokenizer import tokenize
from train import train_one_epoch, validate
from utils.config import Config
from utils.logger import create_logger
from utils.optimizer import build_optimizer
from utils.scheduler import build_scheduler


def parse_config() -> Config:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", "-cfg", required=True)
    parser.add_argument("--opts", nargs="*", default=[], metavar="KEY VALUE")
    args = parser.parse_args()
    return Config.load(args.config, args.opts)


def set_seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def main(config: Config) -> None:
    logger = create_logger()
    torch.set_num_threads(config.NUM_THREADS)
    set_seed(config.SEED)
    train_loader, val_loader = build_dataloader(config)
    text, vocab = tokenize(class_names())
    model = build_model(pretrained_state_dict(vocab, text.shape[1], config), config)
    model = SingleProcess(model)

    criterion = nn.CrossEntropyLoss()
    optimizer = build_optimizer(config, model, logger)
    lr_scheduler = build_scheduler(config, optimizer, len(train_loader))
    use_scaler = config.TRAIN.OPT_LEVEL != "O0" and config.TRAIN.AMP_DTYPE == "float16"
    scaler = torch.amp.GradScaler("cpu", enabled=use_scaler)

    for epoch in range(config.TRAIN.EPOCHS):
        train_one_epoch(epoch, model, criterion, optimizer, lr_scheduler, train_loader, text, config, scaler, logger)
        acc1 = validate(val_loader, text, model, config, logger)
        logger.info(f"Accuracy of the network on the {len(val_loader.dataset)} test videos: {acc1:.4f}")


if __name__ == "__main__":
    main(parse_config())
