"""The three models of the report, by name."""

from torch import nn

from .attention import AttentionCRNN
from .crnn import CRNN
from .efficient import EfficientCRNN


def build_model(config, characters: int) -> nn.Module:
    cfg, switch = config.MODEL, config.SWITCH
    options = (characters, cfg.WIDTH, cfg.HIDDEN, switch.INPLACE_RELU, switch.NORM)
    if cfg.NAME == "efficient":
        return EfficientCRNN(*options, variant=switch.EFFICIENT)
    return {"crnn": CRNN, "attention": AttentionCRNN}[cfg.NAME](*options)
