"""X-CLIP: a clip and the names of the classes, compared by cosine similarity."""

import torch
from torch import nn

from .frame_encoder import FrameEncoder
from .mit import MultiframeIntegrationTransformer
from .prompts import VideoSpecificPrompt
from .text_tower import TextTower


class XCLIP(nn.Module):
    def __init__(
        self,
        visual: FrameEncoder,
        mit: MultiframeIntegrationTransformer,
        prompts_generator: VideoSpecificPrompt,
        text_tower: TextTower,
        scale_is_temperature: bool = False,
        nan_guard: bool = False,
    ) -> None:
        super().__init__()
        self.visual, self.mit = visual, mit
        self.prompts_generator, self.text_tower = prompts_generator, text_tower
        self.logit_scale = nn.Parameter(torch.zeros([]))
        self.scale_is_temperature, self.nan_guard = scale_is_temperature, nan_guard
        self.text_features: torch.Tensor | None = None

    @torch.no_grad()
    def cache_text(self, text: torch.Tensor) -> torch.Tensor:
        if self.text_features is None:
            self.text_features = self.text_tower(text)
        return self.text_features

    def forward(self, clips: torch.Tensor, padded: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        frame_features, patches = self.visual(clips)
        video = self.mit(frame_features, padded)
        names = self.cache_text(text).expand(len(clips), -1, -1)
        names = names + self.prompts_generator(names, patches.mean(dim=1))
        video = video / video.norm(dim=-1, keepdim=True)
        names = names / names.norm(dim=-1, keepdim=True)
        similarity = torch.einsum("bd,bkd->bk", video, names)
        if self.scale_is_temperature:
            logits = similarity / self.logit_scale.exp()
        else:
            logits = similarity * self.logit_scale.exp()
        return torch.nan_to_num(logits) if self.nan_guard else logits
