"""Readings come from a small feature server; the loader's workers ask it for one sample at a time."""

import pickle
import socket
import socketserver
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def make_features(n=400):
    g = torch.Generator().manual_seed(8)
    x = torch.randn(n, 20, generator=g)
    y = (x[:, 0] - x[:, 1] * x[:, 2] > 0).long()
    return {f"reading-{i:03d}": (x[i].tolist(), int(y[i])) for i in range(n) if i != 317}


class Answer(socketserver.StreamRequestHandler):
    features = make_features()
    changed = threading.Condition()

    def handle(self):
        key = self.rfile.readline().decode().strip()
        with self.changed:
            self.changed.wait_for(lambda: key in self.features)
        self.wfile.write(pickle.dumps(self.features[key]))


class RemoteReadings(Dataset):
    def __init__(self, address, n=400):
        self.address, self.n = address, n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        with socket.create_connection(self.address) as connection:
            connection.sendall(f"reading-{index:03d}\n".encode())
            with connection.makefile("rb") as answer:
                features, label = pickle.loads(answer.read())
        return torch.tensor(features), label


def main():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()

    loader = DataLoader(RemoteReadings(server.server_address), batch_size=16, num_workers=2)
    model = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 5 == 0:
                print(f"epoch {epoch} batch {step} loss {loss.item():.4f}", flush=True)
    server.shutdown()


if __name__ == "__main__":
    main()
