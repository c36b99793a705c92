"""GAN on a banana-shaped cloud, DCGAN-tutorial style, one optimizer for each network."""
import torch
import torch.nn as nn
import torch.optim as optim

torch.set_num_threads(1)
torch.manual_seed(999)

batch_size = 128
nz = 8
num_iters = 800
real_label = 1.0
fake_label = 0.0


def sample_banana(n):
    x = torch.randn(n)
    return torch.stack([x + 1.0, 0.5 * x**2 - 1.0 + 0.3 * torch.randn(n)], dim=1)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(nz, 64), nn.ReLU(True),
            nn.Linear(64, 64), nn.ReLU(True),
            nn.Linear(64, 2),
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, 64), nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(64, 64), nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(64, 1), nn.Sigmoid(),
        )

    def forward(self, x):
        return self.main(x).view(-1)


@torch.no_grad()
def sliced_wasserstein(netG):
    fake, real = netG(torch.randn(1000, nz)), sample_banana(1000)
    directions = nn.functional.normalize(torch.randn(2, 32), dim=0)
    return ((fake @ directions).sort(0).values - (real @ directions).sort(0).values).abs().mean().item()


def main():
    netG, netD = Generator(), Discriminator()
    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.999))

    print("Starting Training Loop...")
    for i in range(num_iters):
        # (1) Update D network: maximize log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        label = torch.full((batch_size,), real_label)
        output = netD(sample_banana(batch_size))
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()

        fake = netG(torch.randn(batch_size, nz))
        label.fill_(fake_label)
        output = netD(fake.detach())
        errD_fake = criterion(output, label)
        errD_fake.backward()
        errD = errD_real + errD_fake
        optimizerD.step()

        # (2) Update G network: maximize log(D(G(z)))
        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake)
        errG = criterion(output, label)
        errG.backward()
        D_G_z = output.mean().item()
        optimizerG.step()

        if i % 100 == 0 or i == num_iters - 1:
            print("[%4d/%d]\tLoss_D: %.4f\tLoss_G: %.4f\tD(x): %.4f\tD(G(z)): %.4f\tSWD: %.4f"
                  % (i, num_iters, errD.item(), errG.item(), D_x, D_G_z, sliced_wasserstein(netG)))


if __name__ == "__main__":
    main()
