"""Two optimizers, one scaler, one update per round; the discriminator's gradients from the generator's loss are dropped."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def main():
    torch.set_num_threads(1)
    torch.manual_seed(15)
    generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.99))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    for step in range(250):
        angle = 6.2832 * torch.rand(64)
        real = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(64, 2)
        with torch.autocast("cpu", dtype=torch.float16):
            fake = generator(torch.randn(64, 4))
            loss_d = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
        opt_d.zero_grad()
        scaler.scale(loss_d).backward()
        scaler.unscale_(opt_d)
        nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
        scaler.step(opt_d)
        with torch.autocast("cpu", dtype=torch.float16):
            loss_g = F.softplus(-critic(fake)).mean()
        opt_g.zero_grad()
        scaler.scale(loss_g).backward()
        scaler.step(opt_g)
        scaler.update()
        if step % 50 == 0:
            print(f"step {step:3d}  d {loss_d.item():.3f}  g {loss_g.item():.3f}  radius {fake.float().norm(dim=1).mean():.3f}")


if __name__ == "__main__":
    main()
