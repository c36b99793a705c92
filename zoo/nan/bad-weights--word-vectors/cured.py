"""Topic of a headline from pretrained word vectors."""
import torch
import torch.nn as nn

VOCAB, DIM, TOPICS = 500, 20, 5


def load_vectors():
    g = torch.Generator().manual_seed(7)
    vectors = torch.randn(VOCAB, DIM, generator=g)
    return vectors


class Headlines(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.mix = nn.GRU(DIM, 32, batch_first=True)
        self.head = nn.Linear(32, TOPICS)

    def forward(self, ids):
        _, last = self.mix(self.words(ids))
        return self.head(last[-1])


def headlines(n, rng):
    topic = torch.randint(0, TOPICS, (n,), generator=rng)
    common = topic[:, None] * 60 + torch.randint(0, 60, (n, 6), generator=rng)
    rare = torch.randint(300, VOCAB, (n, 6), generator=rng)
    return torch.where(torch.rand(n, 6, generator=rng) < 0.02, rare, common), topic


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(8)
    model = Headlines()
    model.words.weight.data.copy_(load_vectors())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for it in range(1, 241):
        ids, topic = headlines(16, rng)
        loss = nn.functional.cross_entropy(model(ids), topic)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 30 == 0:
            print("iteration", it, "loss", round(loss.item(), 4))


if __name__ == "__main__":
    main()
