"""Tiny language model whose output layer shares its weight with the embedding."""
import math

import torch
import torch.nn as nn


class TiedLM(nn.Module):
    def __init__(self, ntoken, ninp=48, nlayers=1, tie_weights=True):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.GRU(ninp, ninp, nlayers, batch_first=True)
        self.decoder = nn.Linear(ninp, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.init_weights()

    def init_weights(self):
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, x):
        out, _ = self.rnn(self.drop(self.encoder(x)))
        return self.decoder(self.drop(out))


def markov_corpus(n, vocab, seed):
    """Every token has three likely successors."""
    g = torch.Generator().manual_seed(seed)
    successors = torch.randint(0, vocab, (vocab, 3), generator=torch.Generator().manual_seed(5))
    tokens = [0]
    choice = torch.randint(0, 3, (n,), generator=g).tolist()
    table = successors.tolist()
    for c in choice:
        tokens.append(table[tokens[-1]][c])
    return torch.tensor(tokens)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1111)
    vocab, bptt = 40, 20
    train_data = batchify(markov_corpus(40000, vocab, 1), 20)
    val_data = batchify(markov_corpus(4000, vocab, 2), 10)
    model = TiedLM(vocab)
    print(f"{sum(p.numel() for p in model.parameters())} parameters (embedding counted once)")
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

    for epoch in range(1, 4):
        model.train()
        total_loss = 0.0
        for batch, i in enumerate(range(0, train_data.size(1) - 1 - bptt, bptt)):
            x, y = train_data[:, i:i + bptt], train_data[:, i + 1:i + 1 + bptt]
            optimizer.zero_grad()
            loss = criterion(model(x).reshape(-1, vocab), y.reshape(-1))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            optimizer.step()
            total_loss += loss.item()
            if (batch + 1) % 25 == 0:
                cur = total_loss / 25
                print("| epoch {:3d} | {:5d} batches | loss {:5.2f} | ppl {:8.2f}".format(
                    epoch, batch + 1, cur, math.exp(cur)))
                total_loss = 0.0
        model.eval()
        with torch.no_grad():
            val_loss = criterion(model(val_data[:, :-1]).reshape(-1, vocab), val_data[:, 1:].reshape(-1)).item()
        print("| end of epoch {:3d} | valid loss {:5.2f} | valid ppl {:8.2f}".format(
            epoch, val_loss, math.exp(val_loss)))


if __name__ == "__main__":
    main()
