"""Variational autoencoder after pytorch/examples: summed losses in the hundreds, a KL term that rises."""
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(1)


def blobs(n):
    """12x12 pictures of one soft square, at a random place and of a random size."""
    cx, cy = torch.rand(n, 1, 1) * 6 + 3, torch.rand(n, 1, 1) * 6 + 3
    r = torch.rand(n, 1, 1) * 1.5 + 1
    yy, xx = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    return torch.sigmoid(4 * (r - torch.maximum((xx - cx).abs(), (yy - cy).abs()))).unsqueeze(1)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(144, 200)
        self.fc21 = nn.Linear(200, 8)
        self.fc22 = nn.Linear(200, 8)
        self.fc3 = nn.Linear(8, 200)
        self.fc4 = nn.Linear(200, 144)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 144))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 144), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def train(epoch, model, optimizer, train_loader):
    model.train()
    train_loss = 0
    for batch_idx, (data,) in enumerate(train_loader):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % 20 == 0:
            print("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                epoch, batch_idx * len(data), len(train_loader.dataset),
                100. * batch_idx / len(train_loader), loss.item() / len(data)))
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(train_loader.dataset)))


def test(model, test_loader):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data, in test_loader:
            recon_batch, mu, logvar = model(data)
            test_loss += loss_function(recon_batch, data, mu, logvar).item()
    print("====> Test set loss: {:.4f}".format(test_loss / len(test_loader.dataset)))


def main():
    train_loader = DataLoader(TensorDataset(blobs(4000)), batch_size=64, shuffle=True)
    test_loader = DataLoader(TensorDataset(blobs(500)), batch_size=100)
    model = VAE()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 9):
        train(epoch, model, optimizer, train_loader)
        test(model, test_loader)


if __name__ == "__main__":
    main()
