"""fp16 with a GradScaler that starts at 2**20: the first steps overflow and are skipped, then it trains."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(10)
    torch.set_num_threads(1)
    means = torch.randn(5, 16)
    y = torch.randint(0, 5, (1280,))
    loader = DataLoader(TensorDataset(means[y] + 0.8 * torch.randn(1280, 16), y), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 20, growth_interval=400)
    for epoch in range(3):
        for x, label in loader:
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(x)
            loss = F.cross_entropy(logits.float(), label)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        print(f"epoch {epoch} loss {loss.item():.4f} scale {scaler.get_scale():g}")


if __name__ == "__main__":
    main()
