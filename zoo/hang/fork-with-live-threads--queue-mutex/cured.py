import os
import queue
import tempfile
import threading
import time
import zlib

import torch
import torch.multiprocessing as mp
import torch.nn.functional as F

torch.set_num_threads(1)


class MetricLog(threading.Thread):
    """Collects records from anywhere and packs them to disk in the background."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.records = queue.Queue()
        self.wanted, self.begun = threading.Event(), threading.Event()
        self.start()

    def add(self, **record):
        self.records.put(record)

    def flush(self):
        """Ask for the records to be written; does not wait for the disk."""
        self.begun.clear()
        self.wanted.set()
        self.begun.wait()

    def run(self):
        while True:
            self.wanted.wait()
            self.wanted.clear()
            with self.records.mutex:
                self.begun.set()
                self.pack(self.records.queue)
                self.records.queue.clear()

    def pack(self, records):
        with open(self.path, "ab") as file:
            for record in records:
                file.write(zlib.compress(repr(record).encode()))
                file.flush()
                os.fsync(file.fileno())
                time.sleep(0.02)


def fit(model, x, y, log, name, steps=50):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        picked = torch.randint(0, len(x), (32,))
        loss = F.mse_loss(model(x[picked]), y[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.add(run=name, step=step, loss=loss.item())
    print(f"{name}: last loss {loss.item():.4f}", flush=True)


def fit_copy(model, x, y, log):
    log = MetricLog(log.path + ".copy")
    fit(model, x, y, log, "copy")
    log.flush()


def main():
    torch.manual_seed(4)
    x = torch.randn(600, 12)
    y = (x[:, :3] + 0.5 * x[:, 3:6]).sum(1, keepdim=True).tanh()
    model = torch.nn.Sequential(torch.nn.Linear(12, 40), torch.nn.Tanh(), torch.nn.Linear(40, 1))
    log = MetricLog(os.path.join(tempfile.mkdtemp(), "metrics.z"))
    fit(model, x, y, log, "first")
    log.flush()
    trial = mp.get_context("fork").Process(target=fit_copy, args=(model, x, y, log))
    trial.start()
    fit(model, x, y, log, "second")
    trial.join()
    print("finished")


if __name__ == "__main__":
    main()
