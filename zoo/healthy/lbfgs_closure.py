"""Small neural PDE-style fit with LBFGS and a closure that is evaluated many times per step."""
import torch

torch.set_num_threads(1)
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = torch.nn.Linear(1, 32)
        self.l2 = torch.nn.Linear(32, 32)
        self.l3 = torch.nn.Linear(32, 1)

    def forward(self, x):
        return self.l3(torch.tanh(self.l2(torch.tanh(self.l1(x)))))


def residual(net, x):
    """u'' = -pi^2 sin(pi x), u(-1) = u(1) = 0; the solution is sin(pi x)."""
    x = x.clone().requires_grad_(True)
    u = net(x)
    du, = torch.autograd.grad(u.sum(), x, create_graph=True)
    d2u, = torch.autograd.grad(du.sum(), x, create_graph=True)
    return d2u + torch.pi**2 * torch.sin(torch.pi * x)


def main():
    x = torch.linspace(-1, 1, 100).unsqueeze(1)
    ends = torch.tensor([[-1.0], [1.0]])
    net = Net()
    optimizer = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=20, history_size=20, line_search_fn="strong_wolfe")

    for step in range(25):
        def closure():
            optimizer.zero_grad()
            loss = residual(net, x).pow(2).mean() + 10 * net(ends).pow(2).mean()
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        print(f"step {step:2d}  loss {loss.item():.3e}")

    with torch.no_grad():
        print(f"max error {(net(x) - torch.sin(torch.pi * x)).abs().max():.2e}")


if __name__ == "__main__":
    main()
