"""Losses that have no level of guessing, or predictions that no look can compare: nothing is said of them."""

from __future__ import annotations

from collections.abc import Callable

from watching import Watched

Run = Callable[..., Watched]


def test_similarities_with_minus_infinity_on_the_diagonal_are_no_equal_predictions(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        centres = torch.randn(500, 16)
        for _ in range(200):
            some = centres[torch.randint(0, 500, (64,))]
            a, b = (nn.functional.normalize(net(some + 0.3 * torch.randn(64, 16)), dim=1) for _ in range(2))
            z = torch.cat([a, b])
            alike = z @ z.t() / 0.2
            alike.fill_diagonal_(float("-inf"))
            loss = nn.functional.cross_entropy(alike, torch.arange(128).roll(64))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert seen.rules == [], seen.why()


def test_a_bank_that_fills_up_has_no_level_of_guessing(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        bank = []
        for step in range(300):
            some = torch.randn(32, 16)
            a, b = (nn.functional.normalize(net(some + 0.3 * torch.randn(32, 16)), dim=1) for _ in range(2))
            others = torch.cat([b, *bank[-40:]]) if step > 40 else b
            loss = nn.functional.cross_entropy(a @ others.t() / 0.1, torch.arange(32))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            bank.append(b.detach())
        """)
    assert seen.rules == [], seen.why()


def test_values_of_actions_whose_targets_are_made_with_the_model_are_not_misaligned(run_source: Run) -> None:
    seen = run_source("""
        import copy
        import torch
        from torch import nn

        torch.manual_seed(0)
        q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        target = copy.deepcopy(q)
        optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
        for step in range(400):
            state, following = torch.randn(64, 4), torch.randn(64, 4)
            action = torch.randint(0, 2, (64, 1))
            with torch.no_grad():
                wanted = 1 + 0.98 * target(following).max(1).values
            loss = nn.functional.smooth_l1_loss(q(state).gather(1, action).squeeze(1), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                target.load_state_dict(q.state_dict())
        """)
    assert seen.rules == [], seen.why()


def test_a_metric_that_is_taken_out_of_the_graph_cuts_no_layer_off(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)


        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.features, self.shift = nn.Linear(8, 8), nn.Linear(8, 2)

            def forward(self, h, place):
                h = h + self.features(torch.cat([h[:, :6], place], 1)).relu()
                return h, place + self.shift(h).tanh()


        layers = nn.ModuleList(Layer() for _ in range(3))


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers, self.out = layers, nn.Linear(8, 1)

            def forward(self, h, place):
                for layer in self.layers:
                    h, place = layer(h, place)
                return self.out(h).squeeze(1)


        net = Net()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        for _ in range(100):
            h, place = torch.randn(32, 8), torch.randn(32, 2)
            y = h.sum(1) + place[:, 0]
            answer = net(h, place)
            error = ((answer * 3 - y * 3).abs().mean()).detach()
            loss = nn.functional.mse_loss(answer, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert [finding["severity"] for finding in seen.findings] in ([], ["note"]), seen.why()  # the last shift is used by nobody
