import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, DIM, ACCUM = 20, 32, 4


class PromptClassifier(nn.Module):
    """Image tower against fixed text features; the text side comes from a checkpoint."""

    def __init__(self):
        super().__init__()
        self.visual = nn.Sequential(nn.Linear(96, 128), nn.GELU(), nn.Linear(128, DIM))
        self.register_buffer("text_features", torch.zeros(CLASSES, DIM))
        self.register_buffer("scale", torch.zeros(()))

    def forward(self, x):
        image = F.normalize(self.visual(x), dim=-1)
        return self.scale * (image @ self.text_features.t())


def released_weights():
    g = torch.Generator().manual_seed(11)
    return {
        "text_features": F.normalize(torch.randn(CLASSES, DIM, generator=g), dim=-1),
        "scale": torch.tensor(14.3),
        "input_resolution": torch.tensor(224),
    }


def load_pretrained(model):
    state = {k: v for k, v in released_weights().items() if k.startswith(("text", "scale"))}
    model.load_state_dict(state, strict=False)
    return model


def batches(centres, count, size, seed):
    g = torch.Generator().manual_seed(seed)
    for _ in range(count):
        y = torch.randint(0, CLASSES, (size,), generator=g)
        yield centres[y] + 0.6 * torch.randn(size, 96, generator=g), y


def main():
    torch.manual_seed(5)
    centres = torch.randn(CLASSES, 96) * 0.5
    model = load_pretrained(PromptClassifier())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)

    for i, (x, y) in enumerate(batches(centres, 480, 16, seed=1)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x)
            loss = F.cross_entropy(logits, y) / ACCUM
        loss.backward()
        if (i + 1) % ACCUM == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if (i + 1) % 40 == 0:
            print(f"iter {i + 1:4d} | loss {loss.item():.4f}")

    x, y = next(batches(centres, 1, 1000, seed=2))
    with torch.no_grad():
        accuracy = (model(x).argmax(-1) == y).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
