"""Faults in forms that a blind tester wrote: one of several optimizers, summed losses, a decorator, an in-place detach."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from watching import Watched

Run = Callable[..., Watched]


def line_of(seen: Watched, note: str) -> str:
    return next(place["code"] for place in seen.findings[0]["where"] if note in place["note"])


def test_one_of_two_optimizers_never_steps(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        trunk, kind, size = nn.Linear(8, 16), nn.Linear(16, 3), nn.Linear(16, 1)
        by_name = {
            "kind": torch.optim.Adam([*trunk.parameters(), *kind.parameters()]),
            "size": torch.optim.Adam(size.parameters()),
        }
        for _ in range(100):
            x = torch.randn(32, 8)
            hidden = trunk(x).relu()
            losses = {
                "kind": nn.functional.cross_entropy(kind(hidden), x[:, :3].argmax(1)),
                "size": nn.functional.mse_loss(size(hidden.detach()).squeeze(-1), x.sum(1)),
            }
            for name, optimizer in by_name.items():
                optimizer.zero_grad()
                losses[name].backward()
            optimizer.step()
        """)
    assert seen.rules[:1] == ["stall/optimizer-never-steps"], seen.why()
    assert seen.findings[0]["severity"] == "warning"
    assert "torch.optim.Adam([*trunk" in line_of(seen, "step never ran")


def test_gradients_that_another_optimizers_backward_finds_are_not_discarded(run_source: Run) -> None:
    """Each is cleared right before its own backward, so the first backward finds what the other's last step has left."""
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        parts = [nn.Linear(8, 1) for _ in range(2)]
        optimizers = [torch.optim.Adam(part.parameters(), lr=0.01) for part in parts]
        for _ in range(1500):
            x = torch.randn(32, 8)
            for part, optimizer in zip(parts, optimizers):
                optimizer.zero_grad()
                nn.functional.mse_loss(part(x).squeeze(-1), x.sum(1)).backward()
            for optimizer in optimizers:
                optimizer.step()
        """)
    assert seen.rules == [], seen.why()
    (process,) = seen.chart.training()
    assert [optimizer.windows for optimizer in process.optimizers.values()] == [1500, 1500]
    assert [optimizer.discarded for optimizer in process.optimizers.values()] == [0, 0]


def test_two_optimizers_that_take_turns_are_no_finding(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        one, other = nn.Linear(8, 1), nn.Linear(8, 1)
        optimizers = [torch.optim.Adam(part.parameters(), lr=0.05) for part in (one, other)]
        for step in range(100):
            x = torch.randn(32, 8)
            loss = nn.functional.mse_loss((one(x) + other(x)).squeeze(-1), x.sum(1))
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            optimizers[step >= 90].step()
        """)
    assert seen.loud == [], seen.why()


def test_a_summed_loss_that_is_divided_has_a_level_of_guessing(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x = torch.randn(600, 10)
        y = x[:, :5].argmax(1)
        model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
        for name, parameter in model.named_parameters():
            parameter.requires_grad = name == "2.bias"
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-5)
        for step in range(120):
            loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / len(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert seen.rules[:1] == ["stall/params-frozen"], seen.why()
    assert seen.findings[0]["severity"] == "critical"


CUT = """
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 3)

        {decorator}
        def encode(self, x):
            return self.body(x).relu(){end}

        def forward(self, x):
            return self.head(self.encode(x))

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(60):
        x = torch.randn(32, 8)
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """


def test_a_decorator_that_cuts_the_graph_is_named(run_source: Run) -> None:
    seen = run_source(CUT.format(decorator="@torch.no_grad()", end=""))
    assert seen.rules[:1] == ["stall/no-gradient"], seen.why()
    assert line_of(seen, "no_grad") == "@torch.no_grad()"


def test_what_is_rounded_has_no_slope(run_source: Run) -> None:
    seen = run_source(CUT.format(decorator="# as it is", end=".sign()"))
    assert seen.rules[:1] == ["stall/no-gradient"], seen.why()
    assert ".sign()" in line_of(seen, "the slope of `sign` is zero")


def test_a_gradient_that_passes_a_rounding_straight_through_is_no_finding(run_source: Run) -> None:
    source = CUT.format(decorator="# as it is", end="")
    seen = run_source(source.replace("return self.body(x)", "h = self.body(x); return h + (h.round() - h).detach()"))
    assert seen.loud == [], seen.why()


BUCKETS = """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, Sampler, TensorDataset

        torch.manual_seed(0)
        y = torch.arange(6).repeat_interleave(80)
        x = torch.randn(6, 12)[y] + 0.5 * torch.randn(480, 12)

        class Buckets(Sampler):
            def __len__(self):
                return 30

            def __iter__(self):
                for start in {starts}:
                    yield list(range(16 * start, 16 * start + 16))

        net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 6))
        opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        for epoch in range(10):
            for a, b in DataLoader(TensorDataset(x, y), batch_sampler=Buckets()):
                loss = nn.functional.cross_entropy(net(a), b)
                opt.zero_grad()
                loss.backward()
                opt.step()
        """


def test_batches_of_one_kind_in_any_order_are_no_fault_where_the_run_learns(run_source: Run) -> None:
    assert run_source(BUCKETS.format(starts="torch.randperm(30).tolist()")).loud == []
    seen = run_source(BUCKETS.format(starts="range(30)").replace("0.5 *", "2.0 *").replace("lr=0.05", "lr=0.1"))
    assert "data/not-shuffled" in [found["rule"] for found in seen.loud], seen.why()


def test_a_detach_in_place_is_named(run_source: Run) -> None:
    seen = run_source(CUT.format(decorator="# as it is", end=".detach_()"))
    assert seen.rules[:1] == ["stall/no-gradient"], seen.why()
    assert ".detach_()" in line_of(seen, "cuts the graph")


def test_a_head_that_is_replaced_after_the_model_was_trained(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        def train(optimizer, classes, steps):
            for _ in range(steps):
                x = torch.randn(32, 8)
                loss = nn.functional.cross_entropy(net(x), x[:, :classes].argmax(1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        train(torch.optim.Adam(net.parameters(), lr=0.01), 3, 60)
        net[0].requires_grad_(False)
        later = torch.optim.Adam(net[2].parameters(), lr=0.01)
        net[2] = nn.Linear(16, 5)
        train(later, 5, 100)
        """)
    assert [finding["rule"] for finding in seen.loud] == ["stall/params-not-in-optimizer"], seen.why()
    assert "later = torch.optim.Adam" in seen.loud[0]["where"][0]["code"]
    assert "random" not in str(seen.findings), "what was trained before it was frozen is not random"


def test_layers_whose_output_nobody_uses_are_a_note(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.message, self.shift = nn.Linear(9, 8), nn.Linear(8, 1)

            def forward(self, h, at):
                m = self.message(torch.cat([h, at], 1)).relu()
                return h + m, at + self.shift(m)

        layers, head = nn.ModuleList([Layer(), Layer()]), nn.Linear(8, 1)
        optimizer = torch.optim.Adam([*layers.parameters(), *head.parameters()], lr=0.01)
        for step in range(80):
            h, at = torch.randn(32, 8), torch.randn(32, 1)
            target = h.sum(1, keepdim=True) * at
            for layer in layers:
                h, at = layer(h, at)
            loss = nn.functional.mse_loss(head(h), target)
            if step % 3 == 0:
                print(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert seen.loud == [], seen.why()
    assert [finding["title"] for finding in seen.findings] == [
        "2 parameters of layers that run in training never get a gradient: no path leads from their output to the loss"
    ], seen.why()


def test_milestones_in_epochs_stepped_with_each_batch(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 4))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 6, 9])
        for _ in range(400):
            x = torch.randn(64, 10)
            loss = nn.functional.cross_entropy(net(x), (x[:, :4] * x[:, 4:8]).argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        """)
    assert [finding["rule"] for finding in seen.loud] == ["schedule/decays-to-zero-early"], seen.why()
    assert seen.loud[0]["severity"] == "warning"
    assert "the loss stands still" in seen.loud[0]["title"]
    assert seen.loud[0]["where"][0]["code"].startswith("schedule = ")


def test_a_backward_that_torch_refuses_is_looked_into_although_a_nan_lies_about(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        net, other = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Linear(4, 4)
        first, second = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.SGD(other.parameters(), lr=0.1)
        unknown = float("nan")
        for step in range(20):
            out = net(other(torch.randn(16, 4)))
            one, two = out.pow(2).mean(), (out - 1).pow(2).mean()
            first.zero_grad()
            one.backward(retain_graph=True)
            first.step()
            second.zero_grad()
            if step > 10:
                two.backward()
            second.step()
        """)
    assert seen.rules[:1] == ["autograd/step-between-backwards"], seen.why()
    assert seen.findings[0]["where"][0]["code"] == "first.step()"


def test_hidden_states_that_are_cleared_before_backward(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell, self.out, self.states = nn.GRUCell(2, 8), nn.Linear(8, 1), []

            def forward(self, x):
                h = x.new_zeros(len(x), 8)
                for t in range(x.shape[1]):
                    h = self.cell(x[:, t], h)
                    self.states.append(h)
                return self.out(h)

            def forget(self):
                for state in self.states:
                    state.data.zero_()
                self.states.clear()

        net = Reader()
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(20):
            x = torch.randn(16, 5, 2)
            loss = nn.functional.mse_loss(net(x), x.sum((1, 2)).unsqueeze(1))
            net.forget()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert seen.rules[:1] == ["autograd/silently-modified"], seen.why()
    assert seen.findings[0]["where"][0]["code"] == "state.data.zero_()"


@pytest.mark.parametrize(("written_to", "sick"), [("hidden", True), ("hidden[:, 1:]", True), ("hidden.clone()", False)])
def test_what_is_written_to_must_be_what_backward_needs(run_source: Run, written_to: str, sick: bool) -> None:
    seen = run_source(f"""
        import torch
        from torch import nn

        torch.manual_seed(0)
        torch.set_num_threads(1)
        inward, outward = nn.Linear(8, 16), nn.Linear(16, 8)
        optimizer = torch.optim.Adam([*inward.parameters(), *outward.parameters()], lr=1e-3)
        for step in range(60):
            x = torch.randn(32, 8)
            hidden = torch.sigmoid(inward(x))
            loss = (outward(hidden) - x).pow(2).mean()
            shown = {written_to}
            shown.data[shown.data < 0.4] = 0
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """)
    assert ("autograd/silently-modified" in seen.rules) is sick, seen.why()


def test_all_pairs_in_a_loss_of_the_users_own_are_found_where_they_are_made(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        def log_cosh(prediction, target):
            error = 2.0 * (prediction - target)
            return (error + nn.functional.softplus(-2.0 * error)).mean()

        def score(prediction, target):
            return ((prediction.squeeze(1) - target) ** 2).mean()

        torch.manual_seed(0)
        net = nn.Linear(6, 1)
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(20):
            x = torch.randn(24, 6)
            loss = log_cosh(net(x), x.sum(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            score(net(x), x.sum(1))
        """)
    assert seen.rules[:1] == ["stall/shape-broadcast"], seen.why()
    assert seen.findings[0]["where"][0]["code"] == "error = 2.0 * (prediction - target)"


TOWER = """
import torch
from torch import nn

torch.manual_seed(0)

class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower, self.head = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16)), nn.Linear(16, 3)

    @torch.no_grad()
    def encode(self, x):
        return self.tower(x)

    def forward(self, x):
        return self.head(self.encode(x))

model = Towers()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(60):
    x = torch.randn(32, 8)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        model.encode(torch.randn(4, 8))
"""


def test_a_tower_that_is_also_called_on_its_own_is_still_known_as_part_of_the_model(run_source: Run) -> None:
    seen = run_source(TOWER)
    assert seen.rules[:1] == ["stall/no-gradient"], seen.why()
    assert "@torch.no_grad()" in seen.findings[0]["where"][0]["code"]


SIZED = """
import torch
from torch import nn

torch.manual_seed(0)

def size_of(trunk):
    {before}
    trunk.eval()
    with torch.no_grad():
        return trunk(torch.zeros(1, 8)).shape[1]

trunk = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())
model = nn.Sequential(trunk, nn.Linear(size_of(trunk), 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(80):
    x = 3 * torch.randn(32, 8) + 1
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_part_that_stays_in_eval_mode_with_statistics_of_no_data(run_source: Run) -> None:
    seen = run_source(SIZED.format(before="pass"))
    assert seen.rules[:1] == ["mode/eval-during-training"], seen.why()
    assert seen.findings[0]["where"][0]["code"] == "trunk.eval()"


def test_a_part_that_keeps_the_statistics_it_has_learnt_is_no_finding(run_source: Run) -> None:
    seen = run_source(SIZED.format(before="trunk(3 * torch.randn(256, 8) + 1)"))
    assert seen.loud == [], seen.why()


AVERAGED = """
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

def data(count):
    x = torch.randn(count, 8)
    return TensorDataset(x, x[:, :3].argmax(1))

@torch.no_grad()
def score(net, loader):
    return sum(nn.functional.cross_entropy(net(x), y).item() for x, y in loader)

model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
average = AveragedModel(model)
{after}
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
train, held_out = DataLoader(data(640), 32, shuffle=True), DataLoader(data(128), 32)
for epoch in range(6):
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
    model.eval()
    print(score(average, held_out))
    model.train()
"""


def test_an_average_of_the_weights_that_is_validated_in_train_mode(run_source: Run) -> None:
    seen = run_source(AVERAGED.format(after=""))
    assert seen.rules[:1] == ["mode/train-during-validation"], seen.why()
    assert line_of(seen, "nothing calls eval() on it") == "average = AveragedModel(model)"


def test_an_average_of_the_weights_whose_answers_alone_are_looked_at(run_source: Run) -> None:
    source = AVERAGED.replace("nn.functional.cross_entropy(net(x), y).item()", "(net(x).argmax(1) == y).sum().item()")
    source = source.replace("AveragedModel(model)", "copy.deepcopy(model)").replace("import torch\n", "import copy, torch\n", 1)
    source = source.replace("average.update_parameters(model)", """with torch.no_grad():
            for e, m in zip(average.state_dict().values(), model.state_dict().values()):
                e.copy_(m)""")
    seen = run_source(source.format(after="average.requires_grad_(False)"))
    assert seen.rules[:1] == ["mode/train-during-validation"], seen.why()
    seen = run_source(source.format(after="average.requires_grad_(False).eval()"))
    assert seen.loud == [], seen.why()


def test_an_average_of_the_weights_in_eval_mode_is_no_finding(run_source: Run) -> None:
    seen = run_source(AVERAGED.format(after="average.eval()"))
    assert seen.loud == [], seen.why()


CLASSIFIER = """
        import torch
        from torch import nn
        from torch.nn import functional as F

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
        optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
        W = torch.randn(20, 4)
        def batch():
            x = torch.randn(32, 20)
            return x, (x @ W).argmax(1)
"""


def test_a_number_for_the_log_that_is_made_from_a_training_output_is_no_validation(run_source: Run) -> None:
    seen = run_source(CLASSIFIER + """
        for step in range(300):
            x, y = batch()
            out = net(x)
            loss = F.cross_entropy(out, y, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                unsmoothed = F.cross_entropy(out, y)
        """)
    assert seen.loud == [], seen.why()


def test_a_validation_without_loader_that_begins_while_nobody_looks(run_source: Run) -> None:
    seen = run_source(CLASSIFIER + """
        @torch.inference_mode()
        def validate():
            x, y = batch()
            return F.cross_entropy(net(x), y).item()
        for epoch in range(3):
            for step in range(211):
                x, y = batch()
                loss = F.cross_entropy(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(validate())
        """)
    assert seen.rules[:1] == ["mode/train-during-validation"], seen.why()
    assert seen.findings[0]["where"][0]["code"] == "return F.cross_entropy(net(x), y).item()"


def test_real_and_fake_on_one_line_are_not_constant_labels(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        G = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
        D = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
        of_g, of_d = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
        bce, ones, zeros = nn.BCEWithLogitsLoss(), torch.ones(64, 1), torch.zeros(64, 1)
        for step in range(400):
            real, fake = torch.randn(64, 4) * 0.2 + 5, G(torch.randn(64, 8))
            for_d = bce(D(real), ones) + bce(D(fake.detach()), zeros)
            of_d.zero_grad()
            for_d.backward()
            of_d.step()
            for_g = bce(D(fake), ones)
            of_g.zero_grad()
            for_g.backward()
            of_g.step()
        """)
    assert "data/labels-constant" not in seen.rules, seen.why()


def test_a_log_softmax_over_the_steps_of_a_sequence(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        words, tag = nn.Embedding(40, 16), nn.Linear(16, 5)
        model = nn.Sequential(words, tag, nn.LogSoftmax(dim=1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for step in range(120):
            tokens = torch.randint(40, (16, 12))
            loss = nn.functional.nll_loss(model(tokens).reshape(-1, 5), (tokens % 5).reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert seen.rules[:1] == ["stall/wrong-softmax-axis"], seen.why()
    assert "axis 1 of shape (16, 12, 5)" in seen.findings[0]["title"]


def test_gradients_that_pile_up_until_the_loss_overflows(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for step in range(400):
            x = torch.randn(32, 20)
            loss = nn.functional.cross_entropy(model(x), x[:, :5].argmax(1))
            loss.backward()
            optimizer.step()
        """)
    assert seen.rules[:1] == ["stall/gradients-never-cleared"], seen.why()


ATTACKED = """
        import torch
        from torch import nn

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3))
        optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
        criterion = nn.CrossEntropyLoss()
        def attacked(x, y):
            {attack}
        for step in range(150):
            x = torch.randn(64, 10)
            y = x[:, :3].argmax(1)
            worse = attacked(x, y)
            optimizer.zero_grad()
            loss = criterion(net(x), y) + criterion(net(worse), y)
            loss.backward()
            optimizer.step()
"""
ON_THE_INPUT = """x = x.clone().requires_grad_()
            criterion(net(x), y).backward()
            return (x + 0.1 * x.grad.sign()).detach()"""
ON_A_DIFFERENCE = """apart = torch.zeros_like(x, requires_grad=True)
            for _ in range(2):
                criterion(net(x + apart), y).backward()
                apart.data = (apart + 0.05 * apart.grad.sign()).detach()
                apart.grad = None
            return (x + apart).detach()"""


@pytest.mark.parametrize("attack", [ON_THE_INPUT, ON_A_DIFFERENCE], ids=["input", "difference"])
def test_gradients_that_an_attack_on_the_input_leaves_in_the_weights_are_no_lost_batches(attack: str, run_source: Run) -> None:
    seen = run_source(ATTACKED.format(attack=attack))
    assert seen.loud == [], seen.why()


def test_tasks_one_after_another_in_batches_cut_by_hand_are_a_note(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        centres = 3 * torch.randn(6, 12)
        net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 6))
        optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
        for task in range(3):
            for step in range(80):
                y = 2 * task + torch.randint(2, (32,))
                loss = nn.functional.cross_entropy(net(centres[y] + torch.randn(32, 12)), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """)
    assert seen.loud == [], seen.why()


def test_an_optimizer_that_only_holds_another_asks_for_no_looks(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        class Around(torch.optim.Optimizer):
            def __init__(self, params, **options):
                super().__init__(params, options)
                self.inner = torch.optim.SGD(self.param_groups, **options)

            def update(self):
                self.inner.step()
                self.zero_grad()

        torch.manual_seed(0)
        net = nn.Linear(8, 3)
        optimizer = Around(net.parameters(), lr=0.05)
        for step in range(1500):
            x = torch.randn(16, 8)
            nn.functional.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
            optimizer.update()
        """)
    looks = sum(line.startswith('{"k":"deep"') for file in seen.folder.rglob("*.jsonl") for line in file.read_text().splitlines())
    assert 0 < looks < 60, seen.why()


PAIRS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

def pairs(count, order):
    kinds = torch.randint(6, (count,))
    return TensorDataset(torch.randn(count, 32) + 4 * nn.functional.one_hot(kinds, 32), kinds[order(count)])

train, held_out = DataLoader(pairs(320, torch.{order}), 32, shuffle=True), DataLoader(pairs(128, torch.arange), 32)
net = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 6))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(25):
    net.train()
    for x, y in train:
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(epoch, sum(criterion(net(x), y).item() for x, y in held_out))
"""


def test_pairs_that_were_torn_apart_are_learnt_by_heart_and_noted(run_source: Run) -> None:
    seen = run_source(PAIRS.format(order="randperm"))
    assert seen.rules == ["stall/inputs-and-targets-misaligned"], seen.why()
    assert seen.loud == [], seen.why()
    assert "criterion(net(x), y).backward()" in line_of(seen, "of the training"), seen.why()
    assert "guessing" in seen.findings[0]["evidence"][1], seen.why()


def test_of_pairs_that_belong_together_nothing_is_said(run_source: Run) -> None:
    seen = run_source(PAIRS.format(order="arange"))
    assert seen.findings == [], seen.why()


def test_a_mean_of_several_softmaxes_is_probabilities_by_its_values(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        members = nn.ModuleList(nn.Linear(8, 5) for _ in range(3))
        optimizer = torch.optim.SGD(members.parameters(), lr=0.05)
        for step in range(120):
            x = torch.randn(32, 8)
            mixed = torch.stack([member(x).softmax(-1) for member in members]).mean(0)
            loss = nn.functional.cross_entropy(mixed, x[:, :5].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert seen.rules[0] == "stall/double-softmax", seen.why()


def test_layers_in_records_of_a_tuple_are_not_registered(run_source: Run) -> None:
    seen = run_source("""
        from dataclasses import dataclass

        import torch
        from torch import nn

        @dataclass
        class Scale:
            factor: int
            layer: nn.Module

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scales = tuple(Scale(s, nn.Linear(8, 8)) for s in (1, 2))
                self.head = nn.Linear(8, 5)

            def forward(self, x):
                return self.head(sum(torch.tanh(s.factor * s.layer(x)) for s in self.scales))

        torch.manual_seed(0)
        net = Net()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        for step in range(60):
            x = torch.randn(32, 8)
            loss = nn.functional.cross_entropy(net(x), x[:, :5].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert seen.rules[0] == "stall/unregistered-modules", seen.why()


def test_a_train_of_ones_own_that_puts_a_part_into_eval_mode_is_named(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        class Trunk(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())

            def train(self, mode=True):
                super().train(mode)
                for module in self.modules():
                    if isinstance(module, nn.BatchNorm1d):
                        module.eval()
                return self

            def forward(self, x):
                return self.layers(x)

        torch.manual_seed(0)
        net = nn.Sequential(Trunk(), nn.Linear(16, 4))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            net.train()
            for step in range(20):
                x = torch.randn(32, 8)
                loss = nn.functional.cross_entropy(net(x), x[:, :4].argmax(1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """)
    assert seen.rules[0] == "mode/eval-during-training", seen.why()
    assert line_of(seen, "puts them into eval mode") == "module.eval()", seen.why()


def test_a_clip_between_backward_and_step_hides_no_lost_micro_batches(run_source: Run) -> None:
    """Its `no_grad` wakes the watch in the middle of a window: what lies there then is not taken for surgery."""
    seen = run_source("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        for step in range(800):
            net.zero_grad()
            x = torch.randn(4, 8)
            loss = nn.functional.cross_entropy(net(x), x[:, :4].argmax(1)) / 8
            loss.backward()
            if step % 8 == 7:
                nn.utils.clip_grad_norm_(net.parameters(), 5.0)
                optimizer.step()
        """)
    assert seen.rules[0] == "stall/accumulated-gradients-discarded", seen.why()
    assert seen.findings[0]["title"].startswith("7 of 8 micro-batches"), seen.why()


def test_momentum_that_is_loaded_without_its_schedule_is_a_resume_too(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn

        def build():
            net = nn.Linear(8, 4)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            return net, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: max(0.01, 1 - n / 60))

        def train(net, optimizer, schedule):
            for step in range(50):
                x = torch.randn(32, 8)
                loss = nn.functional.cross_entropy(net(x), x[:, :4].argmax(1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()

        torch.manual_seed(0)
        first = build()
        train(*first)
        net, optimizer, schedule = build()
        net.load_state_dict(first[0].state_dict())
        optimizer.load_state_dict(first[1].state_dict())
        train(net, optimizer, schedule)
        """)
    assert "schedule/reset-on-resume" in seen.rules, seen.why()


STAGES = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))
for parameter in net.parameters():
    parameter.requires_grad_(False)
net[2].{freed}
net[4].requires_grad_(True)
optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad])
for _ in range(200):
    x = torch.randn(32, 8)
    loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_module_that_is_freed_by_an_attribute_stays_frozen(run_source: Run) -> None:
    seen = run_source(STAGES.format(freed="requires_grad = True"))
    assert seen.rules[:1] == ["stall/params-frozen"], seen.why()
    assert line_of(seen, "sets an attribute of the Linear") == "net[2].requires_grad = True"


def test_a_module_that_is_freed_by_the_call_is_no_finding(run_source: Run) -> None:
    assert run_source(STAGES.format(freed="requires_grad_(True)")).rules == []


FACTORS = """
import torch
from torch import nn


class Ratings(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(40, 4)
        self.item = {item}

    def forward(self, u, i):
        return (self.user(u) * self.item[i]).sum(-1)


torch.manual_seed(0)
truth = torch.randn(40, 4) @ torch.randn(4, 30)
net = Ratings()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for _ in range(300):
    u, i = torch.randint(40, (64,)), torch.randint(30, (64,))
    loss = (net(u, i) - truth[u, i]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("item", ["nn.Parameter(torch.randn(4, 30)).t()", "nn.Parameter(torch.randn(4, 30)).t().contiguous()"])
def test_a_tensor_that_is_computed_from_a_parameter_is_none(run_source: Run, item: str) -> None:
    seen = run_source(FACTORS.replace("{item}", item))
    assert seen.rules[:1] == ["stall/unregistered-modules"], seen.why()
    assert line_of(seen, "a plain tensor") == f"self.item = {item}"


def test_a_parameter_that_is_computed_before_it_becomes_one_is_no_finding(run_source: Run) -> None:
    assert run_source(FACTORS.replace("{item}", "nn.Parameter(torch.randn(4, 30).t())")).rules == []


BEHIND_A_HELPER = """
import torch
from torch import nn
from torch.nn import functional as F


{decorator}
def unit(z):
    z = z - z.mean(0)
    return z / (z.norm(dim=1, keepdim=True) + 1e-6)


torch.manual_seed(0)
centres = torch.randn(6, 10)
encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
proxies = nn.Parameter(torch.randn(6, 4))
optimizer = torch.optim.Adam([*encoder.parameters(), proxies], lr=0.01)
for _ in range(200):
    y = torch.randint(6, (64,))
    z = unit(encoder(centres[y] + 0.5 * torch.randn(64, 10)))
    loss = F.cross_entropy(5 * z @ F.normalize(proxies, dim=1).T, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_helper_that_switches_gradients_off_is_named_where_only_bare_parameters_learn(run_source: Run) -> None:
    seen = run_source(BEHIND_A_HELPER.format(decorator="@torch.no_grad()"))
    assert seen.rules[:1] == ["stall/no-gradient"], seen.why()
    assert line_of(seen, "`no_grad` is on here") == "@torch.no_grad()"


def test_bare_parameters_beside_a_model_are_no_finding(run_source: Run) -> None:
    assert run_source(BEHIND_A_HELPER.format(decorator="")).rules == []


BY_HAND = """
import torch

torch.manual_seed(0)
weights = [(torch.randn(3, 32) / 2).requires_grad_(), (torch.randn(32, 1) / 6).requires_grad_()]
for _ in range(300):
    x = torch.randn(64, 3)
    loss = ((torch.tanh(x @ weights[0]) @ weights[1]).squeeze(1) - x[:, 0] * x[:, 1]).square().mean()
    for w in weights:
        if w.grad is not None:
            {clear}
    loss.backward()
    with torch.no_grad():
        for w in weights:
            w -= 0.05 * w.grad
"""


def test_gradients_that_an_update_of_ones_own_never_clears(run_source: Run) -> None:
    seen = run_source(BY_HAND.format(clear="w.grad.zero_"))
    assert seen.rules[:1] == ["stall/gradients-never-cleared"], seen.why()
    assert line_of(seen, "is named, and not called") == "w.grad.zero_"


@pytest.mark.parametrize("clear", ["w.grad.zero_()", "w.grad = None", "w.grad *= 0.9"])
def test_an_update_of_ones_own_that_clears_or_keeps_momentum_is_no_finding(run_source: Run, clear: str) -> None:
    assert run_source(BY_HAND.format(clear=clear)).rules == []


MASKED = """
import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Hiding(nn.Module):
    def __init__(self):
        super().__init__()
        self.chance = np.random.default_rng(0)
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 6))

    def forward(self, x):
        return self.body(torch.where(torch.from_numpy({drawn} < 0.4), torch.zeros(()), x))


torch.manual_seed(0)
net = Hiding()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(40):
    x = torch.randn(32, 6).cumsum(1)
    loss = (checkpoint(net, x, use_reentrant=False) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_generator_of_the_modules_own_in_a_checkpointed_block(run_source: Run) -> None:
    seen = run_source(MASKED.format(drawn="self.chance.random(x.shape)"))
    assert seen.rules[:1] == ["checkpoint/random-inside"], seen.why()
    assert "draws random numbers from numpy" in seen.findings[0]["title"]


def test_a_generator_that_is_there_and_not_used_in_it_is_no_finding(run_source: Run) -> None:
    assert run_source(MASKED.format(drawn="torch.rand(x.shape).numpy()")).rules == []


COLUMNS = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
truth = torch.randn(5)
net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(300):
    x = torch.randn(64, 5)
    time = {time}
    prediction = net(torch.cat([x, time], 1)).squeeze(1)
    loss = 0.5 * F.mse_loss(prediction, x @ truth) + 0.5 * F.l1_loss(prediction, x @ truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_column_that_drowns_all_others_is_named_and_not_the_layer_behind_it(run_source: Run) -> None:
    seen = run_source(COLUMNS.format(time="1.7e9 + 1e5 * torch.rand(64, 1)"))
    assert seen.rules[:1] == ["data/not-normalised"], seen.why()
    assert "stall/input-ignored" not in seen.rules


def test_columns_of_one_size_are_no_finding(run_source: Run) -> None:
    assert run_source(COLUMNS.format(time="torch.rand(64, 1)")).rules == []


def test_an_autoencoder_that_learns_nothing_does_not_have_the_wrong_targets(run_source: Run) -> None:
    """Its targets are its inputs; what collapses is what lies between."""
    seen = run_source("""
        import torch
        from torch import nn
        from torch.nn import functional as F

        torch.manual_seed(0)
        images = (torch.rand(512, 4) @ torch.randn(4, 36)).sigmoid().round()
        encoder, decoder = nn.Linear(36, 4), nn.Sequential(nn.Linear(2, 32), nn.GELU(), nn.Linear(32, 36))
        optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
        for _ in range(600):
            x = images[torch.randint(512, (64,))]
            mean, spread = encoder(x).chunk(2, 1)
            shown = decoder(mean + torch.randn_like(mean) * spread.exp())
            apart = (mean.square() + (2 * spread).exp() - 2 * spread - 1).sum(1).mean()
            loss = F.binary_cross_entropy_with_logits(shown, x) + 5 * apart
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert "stall/inputs-and-targets-misaligned" not in seen.rules, seen.why()


TAGGER = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Embedding(30, 24), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 5))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(150):
    x = torch.randint(30, (16, 12))
    scores = net(x)
    loss = F.cross_entropy({scores}, x % 5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("scores", ["scores.view(16, 5, 12)", "scores.reshape(16, -1, 12)"])
def test_a_view_that_gives_axes_another_order(run_source: Run, scores: str) -> None:
    seen = run_source(TAGGER.format(scores=scores))
    assert seen.rules[:1] == ["stall/inputs-and-targets-misaligned"], seen.why()
    assert seen.findings[0]["title"] == "predictions are scrambled: a view of shape (16, 12, 5) as (16, 5, 12) moves no number"


@pytest.mark.parametrize("scores", ["scores.transpose(1, 2)", "scores.permute(0, 2, 1).contiguous().view(16, 5, 12)"])
def test_axes_that_are_exchanged_are_no_finding(run_source: Run, scores: str) -> None:
    assert run_source(TAGGER.format(scores=scores)).rules == []


MAPS = """
    import torch
    from torch import nn
    import torch.nn.functional as F

    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 5, 3, padding=1))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(120):
        image = torch.randn(8, 2, 12, 12)
        which = ((image[:, 0] > 0).long() + 2 * (image[:, 1] > 0.5).long())
        wanted = F.one_hot(which, 5){turned}.float()
        loss = F.binary_cross_entropy_with_logits(net(image), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """


def test_one_hot_targets_that_a_view_scrambles(run_source: Run) -> None:
    seen = run_source(MAPS.replace("{turned}", ".view(8, 5, 12, 12)"))
    assert seen.findings[0]["rule"] == "data/labels-one-hot"
    assert line_of(seen, "another order") == "wanted = F.one_hot(which, 5).view(8, 5, 12, 12).float()"


@pytest.mark.parametrize("turned", [".permute(0, 3, 1, 2)", ".movedim(-1, 1)"])
def test_one_hot_targets_whose_axes_are_exchanged_are_no_finding(run_source: Run, turned: str) -> None:
    assert run_source(MAPS.replace("{turned}", turned)).findings == []


def test_as_many_steps_as_classes_are_no_scrambled_targets(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        net = nn.Linear(6, 6)
        optimizer = torch.optim.Adam(net.parameters(), 1e-2)
        for _ in range(120):
            x = torch.randn(16, 6, 6)
            wanted = F.one_hot(x.argmax(-1), 6).float()
            loss = F.binary_cross_entropy_with_logits(net(x), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert seen.findings == []


DEEP = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = []
    for width in (20, 24, 24, 24, 24, 24):
        layers += [nn.Linear(width, 24), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Linear(24, 3))
    for layer in net:
        if isinstance(layer, nn.Linear):
            {drawn}
            nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(250):
        x = torch.randn(48, 20)
        loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """


def test_a_signal_that_fades_because_weights_begin_too_small(run_source: Run) -> None:
    seen = run_source(DEEP.replace("{drawn}", "nn.init.normal_(layer.weight, std=0.02)"))
    assert seen.findings[0]["rule"] == "stall/vanishing-gradient"
    assert "fades" in seen.findings[0]["title"]


def test_weights_of_the_size_of_their_layer_are_no_finding(run_source: Run) -> None:
    assert run_source(DEEP.replace("{drawn}", "nn.init.kaiming_normal_(layer.weight)")).findings == []


SATURATED = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    scale = torch.tensor([200.0, 2000.0, 1800.0, 7.0, 45000.0, 1.0])
    for _ in range(300):
        x = torch.rand(64, 6)
        y = x[:, 0] + x[:, 3] - x[:, 4]
        loss = nn.functional.mse_loss(net({given}), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """


def test_raw_columns_that_saturate_the_first_layer(run_source: Run) -> None:
    seen = run_source(SATURATED.replace("{given}", "x * scale"))
    assert seen.findings[0]["rule"] == "data/not-normalised"


def test_columns_that_are_scaled_do_not(run_source: Run) -> None:
    assert run_source(SATURATED.replace("{given}", "x * 2 - 1")).findings == []


RATES = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Linear(6, 1)
    optimizer = torch.optim.{optimizer}
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, {plan})
    for _ in range(120):
        x = torch.randn(32, 6)
        loss = nn.functional.mse_loss(net(x)[:, 0], x.sum(1) + 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    """


@pytest.mark.parametrize(
    ("optimizer", "plan"),
    [
        ("Adam(net.parameters(), lr=1.0)", "lambda step: 0.02 * 0.99**step"),  # the rate itself, of 1.0
        ("SGD(net.parameters(), lr=0.01)", "lambda step: min(1.0, step / 12_000)"),  # a long warm-up that is at 0.01 now
        ("SGD(net.parameters(), lr=0.02)", "lambda step: 0.5 + 0.5 * 0.98**step"),
    ],
)
def test_factors_that_only_look_like_rates_are_no_rate_times_itself(run_source: Run, optimizer: str, plan: str) -> None:
    seen = run_source(RATES.replace("{optimizer}", optimizer).replace("{plan}", plan))
    assert "schedule/rate-times-itself" not in [finding["rule"] for finding in seen.findings]


def test_workers_that_give_the_same_tensor_all_the_time_measure_something(run_source: Run) -> None:
    seen = run_source("""
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, IterableDataset

        class Same(IterableDataset):
            def __iter__(self):
                for _ in range(128):
                    yield torch.ones(40), torch.tensor(1.0)

        torch.manual_seed(0)
        net = nn.Linear(40, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        for x, y in DataLoader(Same(), batch_size=8, num_workers=2):
            loss = nn.functional.mse_loss(net(x)[:, 0], y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert "data/workers-share-random-state" not in [finding["rule"] for finding in seen.findings]


ATTENTION = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 5)
            self.drop = nn.Dropout(0.1)

        def forward(self, x):
            q, k, v = self.qkv(x).view(24, 6, 3, 2, 8).permute(2, 0, 3, 1, 4)
            {weigh}
            return self.out(x + h.transpose(1, 2).reshape(24, 6, 16))[:, 0]

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Mixer()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(60):
        x = torch.randn(24, 6, 16)
        loss = F.cross_entropy(model(x), x[:, 0, :5].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("weigh", "axis", "severity"), [
    ("h = self.drop(F.softmax(q @ k.mT, dim=1)) @ v", 1, "note"),
    ("h = torch.einsum('bhqk,bhkd->bhqd', (q @ k.mT).softmax(-2), v)", 2, "note"),
    ("h = F.softmax(q @ k.mT, dim=0) @ v", 0, "warning"),
])  # fmt: skip
def test_weights_that_are_summed_over_another_axis_than_the_softmax(run_source: Run, weigh: str, axis: int, severity: str) -> None:
    seen = run_source(ATTENTION.format(weigh=weigh))
    found = next((f for f in seen.findings if f["rule"] == "stall/wrong-softmax-axis"), None)
    assert found is not None, seen.why()
    assert (found["severity"], f"softmax runs over axis {axis}" in found["title"], "softmax" in found["where"][0]["code"]) == (severity, True, True)


@pytest.mark.parametrize("weigh", [
    "h = self.drop(F.softmax(q @ k.mT, dim=-1)) @ v",
    "h = torch.einsum('bhqk,bhkd->bhqd', (q @ k.mT).softmax(3), v)",
    "w = (q @ k.mT).softmax(2); h = (w / w.sum(-1, keepdim=True)) @ v",
    "h = torch.einsum('bhqk,bhqd->bhkd', (q @ k.mT).softmax(-1), v)",
    "h = q.softmax(-1) @ (k.softmax(-2).mT @ v)",
])  # fmt: skip
def test_weights_that_sum_to_one_where_they_are_summed_are_no_finding(run_source: Run, weigh: str) -> None:
    seen = run_source(ATTENTION.format(weigh=weigh))
    assert "stall/wrong-softmax-axis" not in seen.rules, seen.why()


SAMPLED = """
    import torch
    from torch import nn
    from torch.distributions import Independent, Laplace, Normal, kl_divergence

    torch.manual_seed(0)
    torch.set_num_threads(1)
    inward, outward = nn.Linear(8, 4), nn.Linear(2, 8)
    optimizer = torch.optim.Adam([*inward.parameters(), *outward.parameters()], lr=1e-3)
    for step in range(60):
        x = torch.randn(32, 8)
        mean, spread = inward(x).chunk(2, -1)
        q = Normal(mean, spread.exp())
        {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("loss", [
    "loss = (outward(q.sample()) - x).pow(2).mean() + kl_divergence(q, Normal(0, 1)).mean()",
    "loss = -Normal(outward(q.sample()), 1.0).log_prob(x).mean() + kl_divergence(q, Normal(0, 1)).mean()",
    "r = Independent(q, 1); z = torch.cat([r.sample(), x], -1)[:, :2]; loss = (outward(z) - x).pow(2).mean() + kl_divergence(q, Normal(0, 1)).mean()",
    "r = Laplace(mean, spread.exp()); loss = (outward(r.sample()) - x).pow(2).mean() + (mean ** 2).mean()",
])  # fmt: skip
def test_a_sample_that_a_layer_computes_on_with_is_named(run_source: Run, loss: str) -> None:
    seen = run_source(SAMPLED.format(loss=loss))
    assert "stall/sample-without-gradient" in seen.rules, seen.why()


@pytest.mark.parametrize("loss", [
    "loss = (outward(q.rsample()) - x).pow(2).mean()",
    "z = q.sample(); loss = (-q.log_prob(z) * (outward(z) - x).pow(2).sum(-1, keepdim=True).detach()).mean() + outward(z).pow(2).mean()",
    "loss = (outward(mean) - x).pow(2).mean(); shown = q.sample().mean().item()",
    "action = q.sample(); loss = (outward(torch.randn(64, 2)) - torch.randn(64, 8)).pow(2).mean() + (mean ** 2).mean()",
    "target = outward(q.sample()).detach(); loss = (outward(mean) - target - x).pow(2).mean()",
    "with torch.no_grad():\n            z = q.sample()\n        loss = (outward(z) - x).pow(2).mean() + (outward(mean) - x).pow(2).mean()",
])  # fmt: skip
def test_samples_that_need_no_gradient_are_no_finding(run_source: Run, loss: str) -> None:
    seen = run_source(SAMPLED.format(loss=loss))
    assert "stall/sample-without-gradient" not in seen.rules, seen.why()


MODES = """
    import torch
    from torch import nn

    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(6, 16), {layer}, nn.ReLU())

        def forward(self, x):
            return self.body(x)

        def train(self, mode=True):
            return super().train({passed})

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(Part(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = torch.utils.data.TensorDataset(torch.randn(256, 6), torch.randint(0, 2, (256,)))
    train = torch.utils.data.DataLoader(data, 32, shuffle=True)
    held = torch.utils.data.DataLoader(data, 32)
    for epoch in range(5):
        model.train()
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in held)
"""


def test_a_part_that_stays_in_train_mode_while_the_model_is_validated(run_source: Run) -> None:
    seen = run_source(MODES.format(layer="nn.BatchNorm1d(16)", passed=""))
    assert seen.rules[:1] == ["mode/train-during-validation"], seen.why()
    assert "1 BatchNorm layer of it in train mode" in seen.findings[0]["title"]


@pytest.mark.parametrize(("layer", "passed"), [("nn.BatchNorm1d(16)", "mode"), ("nn.Dropout(0.2)", "")])
def test_dropout_that_stays_on_in_validation_may_be_meant(run_source: Run, layer: str, passed: str) -> None:
    seen = run_source(MODES.format(layer=layer, passed=passed))
    assert "mode/train-during-validation" not in seen.rules, seen.why()


HELD = """
    import torch
    from torch import nn

    class Stack(nn.Module):
        def __init__(self, parts):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))
            self.parts = {parts}

        def energy(self, x):
            for part in self.parts:
                x = x + part(x).tanh()
            return (self.scale * x).pow(2).sum(-1)

    torch.manual_seed(0)
    torch.set_num_threads(1)
    stack = Stack([nn.Linear(6, 6) for _ in range(3)])
    optimizer = torch.optim.Adam(stack.parameters(), lr=1e-2)
    for step in range(60):
        loss = stack.energy(torch.randn(32, 6)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_layers_that_a_module_hides_which_is_never_called_itself(run_source: Run) -> None:
    seen = run_source(HELD.format(parts="parts"))
    assert seen.rules[:1] == ["stall/unregistered-modules"], seen.why()
    assert seen.findings[0]["title"].startswith("3 layers of Stack")
    assert not run_source(HELD.format(parts="nn.ModuleList(parts)")).loud


LOADED = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    whole = nn.ModuleDict({{"body": nn.Linear(6, 16), "head": nn.Linear(16, 2)}})
    body, head = nn.Linear(6, 16), nn.Linear(16, 2)
    body.load_state_dict({state}, strict=False)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-2)
    for step in range(60):
        x = torch.randn(32, 6)
        loss = nn.functional.cross_entropy(head(body(x).relu()), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_weights_under_names_that_the_module_does_not_know(run_source: Run) -> None:
    for state, note in (("whole.state_dict()", "take 'body.' away"), ("{'other': torch.ones(2)}", "loads nothing")):
        seen = run_source(LOADED.format(state=state))
        assert seen.rules[:1] == ["checkpoint/weights-not-loaded"], seen.why()
        assert note in seen.findings[0]["where"][0]["note"]


@pytest.mark.parametrize("state", [
    "whole['body'].state_dict()", "{'bias': torch.zeros(16)}", "{**whole['body'].state_dict(), 'extra': torch.ones(1)}",
])  # fmt: skip
def test_weights_that_fit_or_are_a_part_are_no_finding(run_source: Run, state: str) -> None:
    assert not run_source(LOADED.format(state=state)).loud


VALIDATED = """
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, TensorDataset

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.p = nn.Linear(8, 32), nn.Linear(32, 3), 0.5

        def forward(self, x):
            return self.second({dropped})

    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(320, 8)
    data = TensorDataset(x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long())
    train, valid = DataLoader(data, 32, shuffle=True), DataLoader(data, 64)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(6):
        net.train()
        for x, y in train:
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            print(epoch, sum((net(x).argmax(1) == y).sum().item() for x, y in valid))
"""


def test_dropout_that_is_not_told_the_mode_is_named(run_source: Run) -> None:
    seen = run_source(VALIDATED.format(dropped="F.dropout(self.first(x).relu(), self.p)"))
    assert seen.rules == ["mode/train-during-validation"], seen.why()
    assert seen.findings[0]["where"][0]["code"] == "return self.second(F.dropout(self.first(x).relu(), self.p))"


@pytest.mark.parametrize("dropped", [
    "F.dropout(self.first(x).relu(), self.p, self.training)",
    "F.dropout(self.first(x).relu(), p=0.5, training=True)",
    "F.dropout(self.first(x).relu(), 0.0)",
])  # fmt: skip
def test_dropout_that_is_told_what_to_do_is_no_finding(run_source: Run, dropped: str) -> None:
    seen = run_source(VALIDATED.format(dropped=dropped))
    assert seen.rules == [], seen.why()


SEQUENCES = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.out = {inner}, nn.Linear(8, 3)

        def forward(self, x):
            {forward}

    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in DataLoader(TensorDataset(torch.randn(960, 6, 8), torch.randint(0, 3, (960,))), {batch}, shuffle=True):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ENCODER = "nn.TransformerEncoderLayer(8, 2, 16)"


@pytest.mark.parametrize(("inner", "forward"), [
    (ENCODER, "return self.out(self.inner(x)[:, 0])"),
    ("nn.GRU(8, 8)", "return self.out(self.inner(x)[0][:, -1])"),
    ("nn.MultiheadAttention(8, 2)", "return self.out(self.inner(x, x, x)[0].mean(1))"),
])  # fmt: skip
def test_samples_that_are_taken_for_steps_are_named(run_source: Run, inner: str, forward: str) -> None:
    seen = run_source(SEQUENCES.format(inner=inner, forward=forward, batch=32))
    assert seen.rules[:1] == ["stall/batch-taken-for-steps"], seen.why()
    assert "self.inner(x" in seen.findings[0]["where"][0]["code"]


@pytest.mark.parametrize(("inner", "forward", "batch"), [
    ("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)", "return self.out(self.inner(x)[:, 0])", 32),
    (ENCODER, "return self.out(self.inner(x.transpose(0, 1))[0])", 32),
    ("nn.LSTM(8, 8)", "return self.out(self.inner(x.permute(1, 0, 2))[0][-1])", 6),
    (ENCODER, "return self.out(self.inner(x[:, :1].transpose(0, 1))[0])", 32),
    (ENCODER, "return self.out(self.inner(x.mean(1).unsqueeze(1))[:, 0])", 32),
])  # fmt: skip
def test_steps_that_are_steps_are_no_finding(run_source: Run, inner: str, forward: str, batch: int) -> None:
    seen = run_source(SEQUENCES.format(inner=inner, forward=forward, batch=batch))
    assert "stall/batch-taken-for-steps" not in seen.rules, seen.why()


AVERAGED_WEIGHTS = """
    import copy

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = 3 + 2 * torch.randn(640, 6)
    data = TensorDataset(x, (x[:, 0] > 3).long())
    train, valid = DataLoader(data, 16, shuffle=True), DataLoader(data, 64)
    net = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    average = {copy}.eval().requires_grad_(False)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(4):
        for x, y in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                {update}
        with torch.no_grad():
            print(epoch, sum((average(x).argmax(1) == y).sum().item() for x, y in valid))
"""
WEIGHTS_ONLY = "[a.lerp_(p, 0.1) for a, p in zip(average.parameters(), net.parameters())]"


def test_a_copy_whose_statistics_are_those_it_was_built_with_is_named(run_source: Run) -> None:
    seen = run_source(AVERAGED_WEIGHTS.format(copy="copy.deepcopy(net)", update=WEIGHTS_ONLY))
    assert seen.rules == ["mode/statistics-as-built"], seen.why()


@pytest.mark.parametrize(("copy", "update"), [
    ("copy.deepcopy(net)", WEIGHTS_ONLY + "; [a.copy_(b) for a, b in zip(average.buffers(), net.buffers())]"),
    ("copy.deepcopy(net)", "average.load_state_dict(net.state_dict())"),
    ("nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))", "pass"),
])  # fmt: skip
def test_copies_with_statistics_and_other_networks_are_no_finding(run_source: Run, copy: str, update: str) -> None:
    seen = run_source(AVERAGED_WEIGHTS.format(copy=copy, update=update))
    assert seen.rules == [], seen.why()


SKIPS = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(90):
    x = torch.randn(16, 4)
    loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    if step == 70:
        loss = loss + BREAKS
    if not loss.isfinite():
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_weights_that_are_nan_while_every_later_loss_is_passed_over(run_source: Run) -> None:
    seen = run_source(SKIPS.replace("BREAKS", "torch.acos((net[0].weight[0] * 0 + 1).clamp(-1, 1)).sum()"))
    assert any(rule.startswith("nan/") for rule in seen.rules), seen.why()
    assert seen.report["verdict"] == "sick"


def test_losses_that_are_passed_over_while_the_weights_stay_sound_are_no_finding(run_source: Run) -> None:
    seen = run_source(SKIPS.replace("BREAKS", "torch.log(x.sum() * 0)"))
    assert not any(rule.startswith("nan/") and finding["severity"] != "note" for rule, finding in zip(seen.rules, seen.findings)), seen.why()
