"""Knob `folder-per-writer`: each TensorBoard writer has a folder of its own.

Changes        writers write beneath the folder that they are given, each into one of its own
Mechanism      writers that share a folder
Not applicable when no writer is made
"""

from __future__ import annotations

import functools
import os
from typing import Any

from _trainsleuth_inside.import_hooks import after_import
from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    acted = says(watch, "folder-per-writer")
    made = [0]

    def loaded(module: Any) -> None:
        build = module.SummaryWriter.__init__

        @functools.wraps(build)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            given = args[0] if args else kwargs.get("log_dir")
            own = os.path.join("runs" if given is None else str(given), "writer-%d-%d" % (os.getpid(), made[0]))
            made[0] += 1
            acted()
            if args:
                args = (own, *args[1:])
            else:
                kwargs["log_dir"] = own
            build(self, *args, **kwargs)

        module.SummaryWriter.__init__ = __init__

    after_import("torch.utils.tensorboard.writer", loaded)
