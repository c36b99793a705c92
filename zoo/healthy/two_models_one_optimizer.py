"""Encoder and decoder as separate modules with one optimizer over itertools.chain of their parameters."""
import itertools

import torch
import torch.nn as nn


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 3))
    decoder = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 20))
    optimizer = torch.optim.Adam(itertools.chain(encoder.parameters(), decoder.parameters()), lr=3e-3)
    criterion = nn.MSELoss()

    # points on a curved 3-dimensional sheet
    z = torch.rand(3000, 3) * 2 - 1
    lift = torch.randn(6, 20)
    data = torch.cat([z, z**2 - 0.33], 1) @ lift
    data = data + 0.05 * torch.randn_like(data)

    for epoch in range(12):
        encoder.train(), decoder.train()
        running_loss = 0.0
        for batch in data[torch.randperm(2700)].split(60):
            optimizer.zero_grad()
            reconstruction = decoder(encoder(batch))
            loss = criterion(reconstruction, batch)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        encoder.eval(), decoder.eval()
        with torch.no_grad():
            val = criterion(decoder(encoder(data[2700:])), data[2700:])
        print("epoch : {}/12, loss = {:.6f}, val = {:.6f}".format(epoch + 1, running_loss / 45, val))


if __name__ == "__main__":
    main()
