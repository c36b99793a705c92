"""WGAN-GP: losses change sign, the penalty needs a second derivative, four critic steps per generator step."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)

LAMBDA, CRITIC_ITERS, BATCH, NOISE = 1.0, 4, 64, 4


def inf_train_gen():
    while True:
        x = torch.randn(BATCH, 2)
        yield torch.stack([2.0 + 0.5 * x[:, 0], 1.0 + 0.5 * x[:, 0] + 0.3 * x[:, 1]], 1)


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, n_out))


def calc_gradient_penalty(netD, real, fake):
    alpha = torch.rand(BATCH, 1)
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    gradients, = torch.autograd.grad(netD(interpolates).sum(), interpolates, create_graph=True)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * LAMBDA


def main():
    netG, netD = mlp(NOISE, 2), mlp(2, 1)
    optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.0, 0.9))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=4e-4, betas=(0.0, 0.9))
    data = inf_train_gen()

    for iteration in range(250):
        for p in netD.parameters():
            p.requires_grad = True
        for _ in range(CRITIC_ITERS):
            real = next(data)
            fake = netG(torch.randn(BATCH, NOISE)).detach()
            netD.zero_grad()
            wasserstein = netD(real).mean() - netD(fake).mean()
            D_cost = -wasserstein + calc_gradient_penalty(netD, real, fake)
            D_cost.backward()
            optimizerD.step()

        for p in netD.parameters():
            p.requires_grad = False
        netG.zero_grad()
        G_cost = -netD(netG(torch.randn(BATCH, NOISE))).mean()
        G_cost.backward()
        optimizerG.step()

        if iteration % 25 == 0 or iteration == 249:
            with torch.no_grad():
                gap = (netG(torch.randn(500, NOISE)).mean(0) - torch.tensor([2.0, 1.0])).norm().item()
            print(f"iter {iteration:3d}  D loss {D_cost.item():+.4f}  G loss {G_cost.item():+.4f}  "
                  f"W {wasserstein.item():+.4f}  mean gap {gap:.3f}")


if __name__ == "__main__":
    main()
