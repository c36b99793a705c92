"""How common is the next word? Embeddings come from co-occurrence counts, then a background process does the training."""

import torch
import torch.multiprocessing as mp
import torch.nn as nn

VOCAB, DIM, CONTEXT = 4000, 64, 3


class NextWord(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(vectors, freeze=False)
        self.squash = nn.Sequential(nn.Flatten(), nn.Linear(CONTEXT * DIM, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, words):
        return self.squash(self.embed(words)).squeeze(1)


class Corpus:
    def __init__(self, length=20000):
        ranks = torch.rand(length).pow(3) * VOCAB
        self.words = ranks.long().clamp(max=VOCAB - 1)

    def vectors(self):
        counts = torch.zeros(VOCAB, DIM)
        counts.index_put_((self.words[:-1], self.words[1:] % DIM), torch.ones(len(self.words) - 1), accumulate=True)
        mixing = torch.randn(DIM, DIM) / DIM**0.5
        return torch.log1p(counts) @ mixing

    def batch(self, size):
        start = torch.randint(0, len(self.words) - CONTEXT - 1, (size,))
        offsets = torch.arange(CONTEXT)
        return self.words[start[:, None] + offsets], self.words[start + CONTEXT] / VOCAB


def fit(vectors, corpus, done):
    model = NextWord(vectors)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.MSELoss()
    for step in range(1, 41):
        words, rank = corpus.batch(8)
        loss = criterion(model(words), rank)
        print(f"{step:3d} loss {loss.item():.4f}", flush=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    done.value = step


if __name__ == "__main__":
    torch.manual_seed(3)
    torch.set_num_threads(4)
    mp.set_start_method("fork")
    corpus = Corpus()
    vectors = corpus.vectors()
    print(f"word vectors: mean {vectors.mean():.3f}, spread {vectors.std():.3f}", flush=True)
    done = mp.Value("i", 0)
    trainer = mp.Process(target=fit, args=(vectors, corpus, done))
    trainer.start()
    trainer.join()
    print("trained for", done.value, "steps")
