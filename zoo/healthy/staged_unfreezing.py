"""ULMFiT-style gradual unfreezing: groups are thawed one by one and added to the optimizer as they thaw."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextEncoder(nn.Module):
    def __init__(self, vocab=50, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, 32, batch_first=True)
        self.neck = nn.Linear(32, 32)
        self.head = nn.Linear(32, 3)

    def forward(self, ids):
        out, _ = self.rnn(self.emb(ids))
        return self.head(torch.tanh(self.neck(out.mean(1))))


def sentences(n, groups, seed):
    """Words come from topics; the label says which topic has most words."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    topical = torch.randint(0, 10, (n, 10), generator=g) + groups[y][:, None]
    noise = torch.randint(0, 50, (n, 10), generator=g)
    keep = torch.rand(n, 10, generator=g) < 0.5
    return torch.where(keep, topical, noise), y


def set_trainable(module, flag):
    for p in module.parameters():
        p.requires_grad = flag


def main():
    torch.set_num_threads(1)
    torch.manual_seed(13)
    model = TextEncoder()
    x, y = sentences(1500, torch.tensor([0, 10, 20]), seed=0)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for i in range(120):
        idx = torch.randint(len(x), (50,))
        opt.zero_grad()
        loss = F.cross_entropy(model(x[idx]), y[idx])
        loss.backward()
        opt.step()
    print(f"pretrained, loss {loss.item():.4f}")

    # new task: other topics matter, so the old features are only half right
    x, y = sentences(1500, torch.tensor([5, 25, 38]), seed=1)
    xv, yv = sentences(400, torch.tensor([5, 25, 38]), seed=2)
    model.head = nn.Linear(32, 3)
    set_trainable(model, False)
    set_trainable(model.head, True)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=3e-3)
    stages = [None, model.neck, model.rnn, model.emb]

    for epoch in range(8):
        if epoch % 2 == 0 and stages[epoch // 2] is not None:
            set_trainable(stages[epoch // 2], True)
            optimizer.add_param_group({"params": stages[epoch // 2].parameters(), "lr": 3e-3 / 2 ** (epoch // 2 - 1)})
        losses = []
        for idx in torch.randperm(len(x)).split(30):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        with torch.no_grad():
            acc = (model(xv).argmax(1) == yv).float().mean()
        groups, mean = len(optimizer.param_groups), sum(losses) / len(losses)
        print(f"epoch {epoch}  groups {groups}  loss {mean:.4f}  val_acc {acc:.3f}")


if __name__ == "__main__":
    main()
