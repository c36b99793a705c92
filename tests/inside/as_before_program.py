"""Does what programs do with torch besides training, and prints all of it; says on standard error nothing of its own."""

import copy
import io
import pickle
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, x, y):
        return self.criterion(self.body(x), y)


def both_losses(scores, labels):
    return F.cross_entropy(scores, labels) + F.mse_loss(scores, scores * 2)


def step(model, optimizer, schedule=None):
    loss = model(torch.randn(4, 6), torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if schedule is not None:
        schedule.step()
    return loss.item().hex()


def scripting():
    print(torch.jit.script(both_losses).code)
    print(torch.jit.script(Classifier()).code)


def tracing():
    scores, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    print(torch.jit.trace(both_losses, (scores, labels)).graph)
    print(torch.jit.trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), scores).graph)
    print(torch.fx.symbolic_trace(both_losses).code)
    print(torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Softmax(1))).graph)
    print(torch.export.export(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), (scores,)).graph)


def transforms():
    weight = torch.ones(2, 3)
    print(torch.vmap(torch.func.grad(lambda row: F.mse_loss(row, torch.zeros(3))))(weight))
    layer = nn.Linear(3, 1)
    print(torch.func.functional_call(layer, {"weight": torch.ones(1, 3), "bias": torch.zeros(1)}, (weight,)))


def copies():
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=2), torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)],
        milestones=[2],
    )
    print(*[step(model, optimizer, schedule) for _ in range(4)])
    again = pickle.loads(pickle.dumps(model))
    torch.manual_seed(1)
    print("pickled", step(again, torch.optim.SGD(again.parameters(), lr=0.1)))
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    torch.manual_seed(1)
    print("copied", step(twin, twin_optimizer), type(copy.deepcopy(schedule)).__name__)
    stored = pickle.loads(pickle.dumps(optimizer.state_dict()))
    optimizer.load_state_dict(stored)
    schedule.load_state_dict(pickle.loads(pickle.dumps(schedule.state_dict())))
    print("loaded", step(model, optimizer, schedule), schedule.get_last_lr())
    buffer = io.BytesIO()
    torch.save(twin, buffer)
    buffer.seek(0)
    print("saved", sorted(torch.load(buffer, weights_only=False).state_dict()))
    torch.save(model, sys.argv[1])


class Listening(torch.Tensor):
    """Notes each function that is called with it."""

    heard = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.heard.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, args, kwargs or {})


class ListeningParameter(nn.Parameter):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Listening.heard.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, args, kwargs or {})


def subclasses():
    model = nn.Linear(6, 3)
    model.weight = ListeningParameter(model.weight.detach())
    model.bias.requires_grad_(False)
    model.weight.requires_grad_(True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        loss = F.cross_entropy(model(torch.randn(4, 6).as_subclass(Listening)), torch.tensor([0, 1, 2, 0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(Listening.heard, type(loss).__name__)


def lazily():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = model(torch.randn(5, 3)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("lazy", loss.item().hex())


def attributes():
    """`requires_grad` of a module is an attribute like any other, and none where nobody has set it."""
    model, plain = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), nn.Linear(2, 2)
    model[0].requires_grad = False
    again = pickle.loads(pickle.dumps(model))
    print("set", vars(again[0])["requires_grad"], "requires_grad" in dir(again[0]), again[0].weight.requires_grad)
    print("not set", hasattr(plain, "requires_grad"), [name for name in dir(plain) if not hasattr(plain, name)], hasattr(nn.Module, "requires_grad"))
    del model[0].requires_grad
    try:
        print(model[0].requires_grad)
    except AttributeError as problem:
        print("deleted:", problem)


def warned():
    """Torch addresses these to the line that calls it."""
    F.mse_loss(torch.ones(3, 1, requires_grad=True), torch.ones(3))
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    torch.optim.lr_scheduler.StepLR(optimizer, 1).step()
    warnings.warn("mine", stacklevel=1)


def caught():
    try:
        nn.Linear(3, 2)(torch.ones(2, 4))
    except RuntimeError as problem:
        print("caught", problem)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for part in (scripting, tracing, transforms, copies, subclasses, lazily, attributes, warned, caught):
        part()
        print(part.__name__, "done", torch.rand(()).item().hex())
    print(sys.path[1:], [name for name in ("sitecustomize", "usercustomize") if getattr(sys.modules.get(name), "mine", False)])
    Classifier()(torch.ones(2, 6), torch.tensor([0, 9]))
