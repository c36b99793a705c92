"""Stands in for the downloaded CLIP checkpoint: the state dict of a text tower, made from a seed."""

import math

import torch

from .text_tower import TextTower


def pretrained_state_dict(vocab: int, context: int, config) -> dict[str, torch.Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(77)
        tower = TextTower(vocab, context, config.MODEL.EMBED_DIM, config.MODEL.HEADS, layers=2)
    state = {f"text_tower.{name}": tensor for name, tensor in tower.state_dict().items()}
    state["logit_scale"] = torch.tensor(math.log(40.0))
    return state
