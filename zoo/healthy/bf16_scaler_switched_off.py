"""One script for all precisions: under bfloat16 the scaler is there but switched off, and clipping follows unscale_."""
import torch
import torch.nn as nn

PRECISION = "bf16"


def main():
    torch.set_num_threads(1)
    torch.manual_seed(13)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(PRECISION)
    model = nn.Sequential(nn.Conv1d(1, 16, 5, padding=2), nn.GELU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=PRECISION == "fp16")
    for step in range(160):
        y = torch.randint(0, 3, (48,))
        time = torch.arange(40) / 40
        x = torch.sin(6.28 * (1 + 2 * y[:, None]) * time + torch.rand(48, 1)) + 0.3 * torch.randn(48, 40)
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            loss = nn.functional.cross_entropy(model(x.unsqueeze(1)), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        if step % 40 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
