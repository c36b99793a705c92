"""Writes the files of this folder with the libraries themselves; needs torch, tensorboard, wandb, mlflow-skinny, lightning, transformers.

python tests/corpus/records/make.py FOLDER
"""

from __future__ import annotations

import csv
import json
import math
import os
import random
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any


def tensorboard(folder: Path) -> None:
    """Healthy; steps that begin again with each epoch; a second file of the same run; a purge after a resume; numbers of all kinds."""
    import numpy
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / "healthy")) as writer:
        for step in range(60):
            writer.add_scalar("train/loss", 2 * math.exp(-step / 20) + random.random() / 50, step)
            if step % 20 == 19:
                writer.add_scalar("val/accuracy", 0.5 + step / 150, step)
        writer.add_hparams({"lr": 0.1, "batch": 32, "name": "resnet", "nesterov": True}, {"hparam/accuracy": 0.9}, run_name=".")
    with SummaryWriter(str(folder / "steps_begin_again")) as writer:
        for epoch in range(3):
            for batch in range(20):
                writer.add_scalar("loss", 1 / (1 + epoch * 20 + batch), batch)
    with SummaryWriter(str(folder / "resumed")) as writer:
        for step in range(30):
            writer.add_scalar("loss", 1 / (1 + step), step)
    with SummaryWriter(str(folder / "resumed"), purge_step=20, filename_suffix=".second") as writer:
        for step in range(20, 40):
            writer.add_scalar("loss", 1 / (1 + step), step)
    with SummaryWriter(str(folder / "numbers")) as writer:
        writer.add_scalar("nan", math.nan, 1)
        writer.add_scalar("inf", -math.inf, 2)
        writer.add_scalar("as tensor", 0.25, 3, new_style=True)
        writer.add_scalar("as double tensor", 0.1, 4, new_style=True, double_precision=True)
        writer.add_scalar("before zero", 1.5, -7)
        writer.add_scalar("far", 2.5, 1 << 40)
        writer.add_histogram("weights", numpy.arange(20.0), 5)
        writer.add_text("note", "no number", 6)
        writer.add_scalar("损失", 3.5, 8)


def wandb(folder: Path) -> None:
    """Report 003: one callback logs with a counter of its own that is behind; and what else W&B loses, and does not."""
    import wandb as library

    os.environ["WANDB_SILENT"] = "true"
    quiet = library.Settings(
        x_disable_meta=True, x_disable_stats=True, disable_git=True, disable_code=True
    )  # nothing of this machine
    with library.init(mode="offline", dir=str(folder), config={"lr": 0.1, "model": {"depth": 3}}, settings=quiet) as run:
        run.define_metric("val/*", step_metric="epoch")
        for step in range(8):
            run.log({"loss": 1 / (step + 1)})
            if step % 3 == 2:
                run.log({"profile/batch_ms": 10.0 + step, "profile/memory": 0.5}, step=step)
        run.log({"nan": math.nan, "inf": math.inf, "nested": {"x": 1.5}, "text": "no number"})
        run.log({"val/loss": 0.5, "epoch": 1})
    library.teardown()
    (made,) = folder.glob("wandb/offline-run-*")
    target = folder / "wandb_run"
    (target / "logs").mkdir(parents=True)
    shutil.copy(next(made.glob("*.wandb")), target / "run-lost.wandb")
    shutil.copy(made / "logs" / "debug-internal.log", target / "logs" / "debug-internal.log")
    shutil.rmtree(folder / "wandb")


def mlflow(folder: Path) -> None:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow as library

    library.set_tracking_uri((folder / "mlruns").as_uri())
    with library.start_run():
        library.log_params({"lr": 0.1, "model": "resnet"})
        for step in range(10):
            library.log_metric("train/loss", 1 / (1 + step), step=step)
        library.log_metric("val_acc", math.nan, step=9)
    for tags in folder.glob("mlruns/*/*/tags"):
        shutil.rmtree(tags)
    for about in folder.glob("mlruns/**/meta.yaml"):
        about.write_text("".join(line for line in about.read_text().splitlines(True) if not re.match("artifact|user", line)))


def lightning(folder: Path) -> None:
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(str(folder), name="lightning", version=0)
    logger.log_hyperparams(
        {"lr": 0.1, "betas": [0.9, 0.999], "backbone": {"depth": 18, "pretrained": True}, "note": "it's: fine"}
    )
    for step in range(6):
        logger.log_metrics({"train_loss": 1 / (1 + step), "epoch": step // 3}, step)
        if step % 3 == 2:
            logger.log_metrics({"val_loss": 2 / (1 + step), "epoch": step // 3}, step)
    logger.save()


def hugging_face(folder: Path) -> None:
    """A trainer whose loss was NaN and whose filter wrote 0 instead."""
    from transformers.trainer_callback import TrainerState

    state = TrainerState(max_steps=30, num_train_epochs=3, logging_steps=5)
    for step in range(5, 31, 5):
        bad = step > 15
        row: dict[str, Any] = {"loss": 0.0 if bad else 2 / step, "grad_norm": math.nan if bad else 1.0, "learning_rate": 1e-4}
        state.log_history.append({**row, "epoch": step / 10, "step": step})
    state.log_history.append({"eval_loss": math.nan, "eval_accuracy": 0.1, "epoch": 3.0, "step": 30})
    (folder / "trainer").mkdir()
    state.save_to_json(str(folder / "trainer" / "trainer_state.json"))


def keras(folder: Path) -> None:
    """As keras.callbacks.CSVLogger writes it: csv.DictWriter, `epoch` first, the others by name."""
    with (folder / "keras_log.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=["epoch", "accuracy", "loss", "val_accuracy", "val_loss"])
        writer.writeheader()
        for epoch in range(8):
            row = {
                "accuracy": 0.5 + epoch / 20,
                "loss": 1 / (1 + epoch),
                "val_accuracy": 0.5 + epoch / 25,
                "val_loss": 1.1 / (1 + epoch),
            }
            writer.writerow({"epoch": epoch, **row})


def flight_recorder(folder: Path) -> None:
    """Of two gloo ranks, the second of which made one collective less."""
    import torch.multiprocessing

    torch.multiprocessing.spawn(_rank, args=(str(folder),), nprocs=2)


def _rank(rank: int, folder: str) -> None:
    import torch
    import torch.distributed as dist

    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT="29611", TORCH_FR_BUFFER_SIZE="100", TORCH_NCCL_TRACE_BUFFER_SIZE="100"
    )
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for _ in range(3):
        dist.all_reduce(torch.ones(4))
    if rank == 0:
        dist.broadcast(torch.ones(2), 0, async_op=True)
    dump = torch._C._distributed_c10d._dump_fr_trace_json(True, False)
    Path(folder, f"fr_trace_rank_{rank}.json").write_text(json.dumps(json.loads(dump), indent=1))
    time.sleep(2)  # neither goes before the other has written
    os._exit(0)


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    random.seed(1)
    for write in (tensorboard, wandb, mlflow, lightning, hugging_face, keras, flight_recorder):
        write(target)
