"""Character-level GPT in one file: causal mask with -inf, positions, generation under no_grad at the end."""
import torch
import torch.nn as nn
from torch.nn import functional as F

# hyperparameters
batch_size = 16
block_size = 32
max_iters = 250
eval_interval = 25
eval_iters = 3
learning_rate = 3e-3
n_embd = 48
n_head = 4
n_layer = 2
dropout = 0.0

torch.set_num_threads(1)
torch.manual_seed(1337)

SUBJECTS = ["the cat", "a dog", "the old man", "my friend", "the bird"]
VERBS = ["sees", "likes", "finds", "follows", "draws"]
OBJECTS = ["the red ball", "a small house", "the river", "an apple", "the moon"]


def corpus(n):
    pick = lambda words: words[int(torch.randint(len(words), (1,)))]
    return "\n".join(f"{pick(SUBJECTS)} {pick(VERBS)} {pick(OBJECTS)}." for _ in range(n))


text = corpus(1500)
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]


def get_batch(split):
    d = train_data if split == "train" else val_data
    ix = torch.randint(len(d) - block_size, (batch_size,))
    return torch.stack([d[i:i + block_size] for i in ix]), torch.stack([d[i + 1:i + block_size + 1] for i in ix])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)
        self.ffwd = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.ReLU(), nn.Linear(4 * n_embd, n_embd))
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(B, T, 3, n_head, C // n_head).permute(2, 0, 3, 1, 4)
        wei = q @ k.transpose(-2, -1) * (C // n_head) ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf")).softmax(-1)
        x = x + self.proj((wei @ v).transpose(1, 2).reshape(B, T, C))
        return x + self.ffwd(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding_table = nn.Embedding(len(chars), n_embd)
        self.position_embedding_table = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, len(chars))

    def forward(self, idx, targets=None):
        x = self.token_embedding_table(idx) + self.position_embedding_table(torch.arange(idx.shape[1]))
        logits = self.lm_head(self.ln_f(self.blocks(x)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, len(chars)), targets.reshape(-1))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -block_size:])
            idx = torch.cat((idx, torch.multinomial(logits[:, -1].softmax(-1), 1)), dim=1)
        return idx


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    out = {s: torch.stack([model(*get_batch(s))[1] for _ in range(eval_iters)]).mean() for s in ("train", "val")}
    model.train()
    return out


def main():
    model = GPT()
    print(sum(p.numel() for p in model.parameters()) / 1e3, "K parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for it in range(max_iters):
        if it % eval_interval == 0 or it == max_iters - 1:
            losses = estimate_loss(model)
            print(f"step {it}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
        xb, yb = get_batch("train")
        logits, loss = model(xb, yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    model.eval()
    print("".join(chars[i] for i in model.generate(torch.zeros((1, 1), dtype=torch.long), 80)[0].tolist()))


if __name__ == "__main__":
    main()
