"""The optimizer step is fused into backward: one optimizer per parameter steps in a post-accumulate-grad hook."""
import torch
import torch.nn as nn


class Transformerish(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(18, 80), nn.GELU(), nn.LayerNorm(80), nn.Linear(80, 40), nn.GELU())
        self.head = nn.Linear(40, 5)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    w = torch.randn(18, 5)
    x = torch.randn(3000, 18)
    y = (x @ w + torch.relu(x) @ torch.randn(18, 5)).argmax(1)

    model = Transformerish()
    optimizer_dict = {p: torch.optim.Adam([p], lr=2e-3, foreach=False) for p in model.parameters()}

    def optimizer_hook(parameter):
        optimizer_dict[parameter].step()
        optimizer_dict[parameter].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(optimizer_hook)

    for epoch in range(8):
        losses = []
        for idx in torch.randperm(2500).split(50):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            losses.append(loss.item())
        with torch.no_grad():
            acc = (model(x[2500:]).argmax(1) == y[2500:]).float().mean().item()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
