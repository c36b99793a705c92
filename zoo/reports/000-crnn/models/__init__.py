"""The three models of the report, by name."""

from torch import nn

from .attention import AttentionCRNN
from .crnn import CRNN
from .efficient import EfficientCRNN


def build_model(config, characters: int) -> nn.Module:
    cfg, inplace = config.MODEL, config.SWITCH.INPLACE_RELU
    if cfg.NAME == "efficient":
        return EfficientCRNN(characters, cfg.WIDTH, cfg.HIDDEN, inplace, variant=config.SWITCH.EFFICIENT)
    return {"crnn": CRNN, "attention": AttentionCRNN}[cfg.NAME](characters, cfg.WIDTH, cfg.HIDDEN, inplace)
