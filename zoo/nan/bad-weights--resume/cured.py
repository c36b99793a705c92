"""Speaker recognition on cepstral vectors; resumes when a checkpoint lies in the run's folder."""
import pathlib
import tempfile

import torch
import torch.nn as nn


class SpeakerTrainer:
    def __init__(self, folder, lr=3e-3, speakers=8):
        self.path = pathlib.Path(folder) / "last.pt"
        self.model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, speakers))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()
        self.voices = torch.randn(speakers, 16, generator=torch.Generator().manual_seed(50))
        self.step = 0

    def resume(self):
        if self.path.exists():
            saved = torch.load(self.path, weights_only=True)
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step = saved["step"]
            print(f"resumed at step {self.step}")

    def save(self):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}, self.path)

    def fit(self, until):
        while self.step < until:
            y = torch.randint(0, len(self.voices), (32,))
            x = self.voices[y] + 0.8 * torch.randn(32, 16)
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1
            if self.step % 20 == 0:
                print(f"step {self.step} loss {loss.item():.4f}")


def yesterday(folder):
    """Leaves the checkpoint that yesterday's run left behind."""
    run = SpeakerTrainer(folder)
    run.step = 300
    run.save()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        yesterday(folder)
        trainer = SpeakerTrainer(folder)
        trainer.resume()
        trainer.fit(until=420)


if __name__ == "__main__":
    main()
