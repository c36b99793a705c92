"""Runs small failing programs and keeps what they print; `by_hand/` holds what needs a GPU, as users post it.

python tests/corpus/tracebacks/make.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = {
    "modified_in_place": """
        import torch
        w = torch.randn(3, requires_grad=True)
        def step():
            y = torch.exp(w)
            y += 1
            y.sum().backward()
        step()
    """,
    "backward_twice": """
        import torch
        w = torch.randn(3, requires_grad=True)
        loss = (w * w).sum()
        loss.backward()
        loss.backward()
    """,
    "leaf_in_place": """
        import torch
        w = torch.randn(3, requires_grad=True)
        w += 1
    """,
    "no_grad_fn": """
        import torch
        model = torch.nn.Linear(3, 1)
        with torch.no_grad():
            loss = model(torch.randn(2, 3)).sum()
        loss.backward()
    """,
    "shapes_do_not_fit": """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head = torch.nn.Linear(128, 10)
            def forward(self, x):
                return self.head(x.flatten(1))
        Net()(torch.randn(4, 3, 8, 8))
    """,
    "sizes_do_not_match": """
        import torch
        torch.randn(4, 3) + torch.randn(4, 5)
    """,
    "half_and_float": """
        import torch
        layer = torch.nn.Linear(3, 3).half()
        layer(torch.randn(2, 3))
    """,
    "target_out_of_bounds": """
        import torch
        torch.nn.functional.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 2, 3]))
    """,
    "target_size": """
        import torch
        torch.nn.functional.binary_cross_entropy_with_logits(torch.randn(4, 1), torch.rand(4))
    """,
    "batch_sizes_differ": """
        import torch
        torch.nn.functional.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 2]))
    """,
    "state_dict_keys": """
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        model.load_state_dict({f"module.{name}": value for name, value in model.state_dict().items()})
    """,
    "state_dict_sizes": """
        import torch
        torch.nn.Linear(2, 12).load_state_dict(torch.nn.Linear(2, 10).state_dict())
    """,
    "worker_raises": """
        import torch
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, index):
                return {}["image"]
        if __name__ == "__main__":
            for batch in torch.utils.data.DataLoader(Data(), num_workers=2):
                pass
    """,
    "stack_of_unequal": """
        import torch
        data = [torch.zeros(3), torch.zeros(4)]
        next(iter(torch.utils.data.DataLoader(data, batch_size=2)))
    """,
    "pickled_lambda": """
        import torch
        class Data(torch.utils.data.Dataset):
            def __init__(self):
                self.transform = lambda x: x
            def __len__(self):
                return 8
            def __getitem__(self, index):
                return self.transform(index)
        if __name__ == "__main__":
            for batch in torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context="spawn"):
                pass
    """,
    "no_spawn_guard": """
        import torch
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, index):
                return index
        for batch in torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context="spawn"):
            pass
    """,
    "spawned_rank_raises": """
        import torch.multiprocessing
        def rank(number):
            raise ValueError("no data for this rank")
        if __name__ == "__main__":
            torch.multiprocessing.spawn(rank, nprocs=1)
    """,
    "address_in_use": """
        import socket
        import torch.distributed as dist
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{taken.getsockname()[1]}", rank=0, world_size=1)
    """,
    "too_many_open_files": """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
        files = [open(__file__) for _ in range(64)]
    """,
    "weights_only": """
        import argparse, torch
        torch.save({"model": {}, "args": argparse.Namespace(lr=0.1)}, "checkpoint.pt")
        torch.load("checkpoint.pt")
    """,
    "chained": """
        def read(path):
            try:
                return open(path)
            except OSError as problem:
                raise RuntimeError("the data set is not there") from problem
        def main():
            try:
                read("nowhere.csv")
            except RuntimeError:
                print({}["fallback"])
        main()
    """,
    "group": """
        def one():
            raise ValueError("first shard")
        def two():
            raise KeyError("second shard")
        def main():
            found = []
            for shard in (one, two):
                try:
                    shard()
                except Exception as problem:
                    found.append(problem)
            raise ExceptionGroup("shards failed", found)
        main()
    """,
    "dynamo": """
        import torch
        @torch.compile(fullgraph=True, backend="eager")
        def step(x):
            print(x.sum().item())
            return x * 2
        step(torch.ones(3))
    """,
    "unused_parameters": """
        import os, torch
        import torch.distributed as dist
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29655")
        dist.init_process_group("gloo", rank=0, world_size=1)
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.used, self.unused = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
            def forward(self, x):
                return self.used(x)
        model = torch.nn.parallel.DistributedDataParallel(Net())
        for _ in range(2):
            model(torch.randn(1, 2)).sum().backward()
    """,
    "fault": """
        import ctypes, faulthandler
        faulthandler.enable()
        def crash():
            ctypes.string_at(0)
        crash()
    """,
}


def main() -> None:
    for name, source in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            lines = source.strip("\n").splitlines()
            Path(folder, "train.py").write_text("\n".join(line[8:] for line in lines) + "\n")
            done = subprocess.run(
                [sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
            )
            text = done.stderr.replace(folder, "/home/me/project").replace(
                sysconfig.get_paths()["purelib"], "/env/lib/python3/site-packages"
            )
            text = re.sub(r'"(?!/env)[^"\n]*/(?=lib/python3)', '"/usr/', text)
            (HERE / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    main()
