"""Builds X-CLIP around the pre-trained text tower of a CLIP state dict."""

import torch
from torch import nn

from .frame_encoder import FrameEncoder
from .mit import MultiframeIntegrationTransformer
from .prompts import VideoSpecificPrompt
from .text_tower import TextTower
from .xclip import XCLIP


def build_model(state_dict: dict[str, torch.Tensor], config) -> nn.Module:
    data, cfg, switch = config.DATA, config.MODEL, config.SWITCH
    vocab, dim = state_dict["text_tower.token_embedding.weight"].shape
    context = state_dict["text_tower.positional_embedding"].shape[0]
    layers = len({name.split(".")[2] for name in state_dict if name.startswith("text_tower.blocks.")})

    model = XCLIP(
        FrameEncoder(data.INPUT_SIZE, cfg.PATCH_SIZE, dim, cfg.HEADS, cfg.LAYERS, cfg.DROPOUT),
        MultiframeIntegrationTransformer(
            data.NUM_FRAMES, dim, cfg.HEADS, cfg.DROPOUT, mask_is_valid=switch.FRAME_MASK == "inverted"
        ),
        VideoSpecificPrompt(dim, cfg.HEADS),
        TextTower(vocab, context, dim, cfg.HEADS, layers, pool="cls" if switch.UNIFORM == "text" else "eot"),
        scale_is_temperature=switch.UNIFORM == "scale",
        nan_guard=switch.NAN_GUARD,
    )
    missing, unexpected = model.load_state_dict(state_dict, strict=False)
    assert not unexpected and not any(name.startswith("text_tower.") for name in missing)
    if switch.BUILDER_EVAL:
        return model.eval()
    return model
