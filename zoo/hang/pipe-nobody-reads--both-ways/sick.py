"""A spelling checker runs beside the training and is told each batch of made-up words; its remarks are read at the end."""

import subprocess
import sys

import torch
from torch import nn

CHECKER = """
import sys
for line in sys.stdin:
    for word in line.split():
        print(word, "ok" if len(set(word)) > 3 else "dull", *sorted(word), flush=True)
"""


class Checker:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", CHECKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def remarks(self):
        self.process.stdin.close()
        return self.process.stdout.read().splitlines()


def words(n):
    letters = torch.randint(0, 26, (n, 6))
    return letters, ["".join(chr(97 + c) for c in row) for row in letters.tolist()]


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Embedding(26, 8), nn.Flatten(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
checker = Checker()
for step in range(300):
    letters, said = words(64)
    loss = nn.functional.cross_entropy(model(letters), (letters[:, 0] < letters[:, 5]).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    checker.tell(said)
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
print(len(checker.remarks()), "remarks")
