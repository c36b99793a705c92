"""Trains on sound clips that an external program unpacks."""
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

UNPACK = "import sys, zlib; sys.stdout.buffer.write(zlib.decompress(open(sys.argv[1], 'rb').read()))"


class Clips(Dataset):
    def __init__(self, folder):
        self.files = sorted(Path(folder).glob("*.z"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path = self.files[index]
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", UNPACK, str(path)], stdout=subprocess.PIPE)
        raw, _ = child.communicate()
        if child.returncode != 0:
            raise OSError(f"cannot unpack {path}")
        samples = torch.frombuffer(bytearray(raw), dtype=torch.float32)
        return torch.stack([samples.mean(), samples.std(), samples.abs().amax()]), int(path.stem.split("_")[1])


def record(folder, count):
    import zlib

    random.seed(3)
    for number in range(count):
        label = number % 2
        length = 4000 if number < 44 else 30000
        sound = torch.randn(length) * (1.0 + label)
        Path(folder, f"{number:03d}_{label}.z").write_bytes(zlib.compress(sound.numpy().tobytes(), 1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp()
    record(folder, 48)
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for step, (x, y) in enumerate(DataLoader(Clips(folder), batch_size=4)):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
