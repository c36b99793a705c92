"""Denoising regression: recover a filter's response from its noisy input."""
import torch
from torch import nn, optim
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, model, signals, responses, lr=2e-3, batch_size=64):
        self.model = model
        self.signal_loader = DataLoader(signals, batch_size=batch_size, shuffle=True)
        self.response_loader = DataLoader(responses, batch_size=batch_size, shuffle=True)
        self.optimizer = optim.AdamW(model.parameters(), lr=lr)
        self.loss = nn.SmoothL1Loss()

    def fit(self, epochs):
        for epoch in range(epochs):
            losses = []
            for signal, response in zip(self.signal_loader, self.response_loader):
                self.optimizer.zero_grad()
                loss = self.loss(self.model(signal), response)
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            print(f"epoch={epoch} loss={sum(losses) / len(losses):.5f}")


def make_signals(n, length=24):
    signals = torch.randn(n, length).cumsum(dim=1) * 0.5
    kernel = torch.tensor([0.1, 0.2, 0.4, 0.2, 0.1]).view(1, 1, 5)
    responses = nn.functional.conv1d(signals.unsqueeze(1), kernel).squeeze(1)
    signals = signals + 0.1 * torch.randn_like(signals)
    return signals, responses - responses.mean()


def main():
    torch.manual_seed(21)
    torch.set_num_threads(1)
    signals, responses = make_signals(2000)
    model = nn.Sequential(nn.Linear(24, 64), nn.Tanh(), nn.Linear(64, 20))
    Trainer(model, signals[:1600], responses[:1600]).fit(epochs=10)
    with torch.no_grad():
        error = (model(signals[1600:]) - responses[1600:]).pow(2).mean()
    print(f"held-out R2={1 - (error / responses[1600:].var()).item():.3f}")


if __name__ == "__main__":
    main()
