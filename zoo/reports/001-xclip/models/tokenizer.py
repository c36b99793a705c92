"""Words to token numbers. As in CLIP, the end token has the largest number."""

import torch


def tokenize(prompts: list[str]) -> tuple[torch.Tensor, int]:
    words = sorted({word for prompt in prompts for word in prompt.split()})
    number = {word: n for n, word in enumerate(words, start=1)}
    start, end = len(words) + 1, len(words) + 2
    context = max(len(prompt.split()) for prompt in prompts) + 2
    text = torch.zeros(len(prompts), context, dtype=torch.long)
    for row, prompt in zip(text, prompts):
        tokens = [start, *(number[word] for word in prompt.split()), end]
        row[: len(tokens)] = torch.tensor(tokens)
    return text, end + 1
