"""Trains in a child that was forked and in one that was spawned, and in neither of them through the parent."""

import multiprocessing
import sys


def train(name, results):
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(2)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(torch.randn(6, 4)), torch.randint(0, 2, (6,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    results.put((name, loss.item().hex(), multiprocessing.current_process().name))


if __name__ == "__main__":
    if "--import-first" in sys.argv:
        import torch  # noqa: F401
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        results = context.Queue()
        child = context.Process(target=train, args=(method, results), name=method)
        child.start()
        print(results.get(timeout=100))
        child.join(100)
        print(method, child.exitcode)
