"""Truncated backpropagation through time: the hidden state is carried on and detached between chunks."""
import torch
import torch.nn as nn

torch.set_num_threads(1)


def repackage_hidden(h):
    """Wraps hidden states in new tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


class SeqModel(nn.Module):
    def __init__(self, n_in=2, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.lstm = nn.LSTM(n_in, hidden)
        self.out = nn.Linear(hidden, 1)

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(1, bsz, self.hidden), weight.new_zeros(1, bsz, self.hidden)

    def forward(self, x, hidden):
        y, hidden = self.lstm(x, hidden)
        return self.out(y), hidden


def flip_flop(length, bsz, g):
    """Memory task: the output is the last pulse seen on the first input; the second input is noise."""
    pulse = torch.rand(length, bsz, generator=g) < 0.1
    sign = torch.randint(0, 2, (length, bsz), generator=g) * 2.0 - 1.0
    x = torch.stack([pulse * sign, 0.1 * torch.randn(length, bsz, generator=g)], -1)
    y, last = torch.zeros(length, bsz, 1), torch.zeros(bsz)
    for t in range(length):
        last = torch.where(pulse[t], sign[t], last)
        y[t, :, 0] = last
    return x, y


def main():
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(1)
    bptt, bsz = 20, 16
    x, y = flip_flop(2000, bsz, g)
    model = SeqModel()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    for epoch in range(1, 5):
        hidden = model.init_hidden(bsz)
        total = 0.0
        for batch, i in enumerate(range(0, 2000, bptt), 1):
            optimizer.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = model(x[i:i + bptt], hidden)
            loss = criterion(output, y[i:i + bptt])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
            if batch % 20 == 0:
                print(f"| epoch {epoch} | {batch:3d}/100 chunks | loss {total / 20:.5f}")
                total = 0.0


if __name__ == "__main__":
    main()
