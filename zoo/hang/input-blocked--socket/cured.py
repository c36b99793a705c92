"""Report metrics to the lab's tracker, which answers each line with an acknowledgement."""

import json
import socket

import torch
import torch.nn as nn


class Tracker:
    def __init__(self, host, port):
        self.connection = socket.create_connection((host, port), timeout=1)
        self.answers = self.connection.makefile("r")

    def log(self, **metrics):
        self.connection.sendall(json.dumps(metrics).encode() + b"\n")
        try:
            answer = self.answers.readline()
        except OSError:
            return False
        return answer.strip() == "ok"


class Trainer:
    def __init__(self, model, tracker, lr=0.01):
        self.model, self.tracker = model, tracker
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.criterion = nn.MSELoss()

    def step(self, x, y):
        loss = self.criterion(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, x, y, epochs, batch=50):
        for epoch in range(epochs):
            losses = [self.step(x[i], y[i]) for i in torch.randperm(len(x)).split(batch)]
            mean = sum(losses) / len(losses)
            print(f"epoch {epoch} mse {mean:.4f}", flush=True)
            if not self.tracker.log(epoch=epoch, mse=mean):
                print("tracker did not take it", flush=True)


def open_tracker():
    """The tracker's port on this machine."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(500, 8)
    y = x[:, :1] * 2 - x[:, 1:2].abs() + 0.1 * torch.randn(500, 1)
    service = open_tracker()
    model = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(), nn.Linear(32, 1))
    Trainer(model, Tracker(*service.getsockname())).fit(x, y, epochs=4)
    print("finished")
