"""Losses of the variational models."""


def negative_elbo(recon, x, mu, logvar, beta=0.1):
    distortion = (recon - x).abs().sum(dim=1)
    kl = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(dim=1)
    return (distortion + beta * kl).mean()
