"""fp16 autocast with a scaler, gradient accumulation, and a clip that comes after unscaling."""
import torch
import torch.nn as nn


class Reader(nn.Module):
    def __init__(self, vocabulary=16, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.gru(self.embed(tokens))[0])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu")
    for step in range(150):
        total = 0.0
        for _ in range(2):
            start = torch.randint(0, 16, (32, 1))
            tokens = (start + 3 * torch.arange(13)) % 16
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(tokens[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            scaler.scale(loss / 2).backward()
            total += loss.item() / 2
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if step % 25 == 0:
            print(f"step {step:3d}  loss {total:.4f}  norm {norm:.3f}")


if __name__ == "__main__":
    main()
