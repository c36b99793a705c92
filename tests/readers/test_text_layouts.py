"""Each layout gives its points: names, values, and where in the run they stand."""

from __future__ import annotations

import math

import pytest

from readers.reading import At, facts_of, points_of

LAYOUTS = {
    "a plain print": ("Epoch 3, loss: 0.31\nEpoch 4, loss: 0.29\n", {"loss": [At(0.31, None, 3), At(0.29, None, 4)]}),
    "key=value": ("epoch=3 loss=0.31\n", {"loss": [At(0.31, None, 3)]}),
    "a mean in parentheses": ("[3/30] loss 0.31 (0.33)\n", {"loss": [At(0.31, 3, 0)]}),
    "epoch and step in brackets": ("Epoch [2/5], Step [100/600], Loss: 0.31\n", {"Loss": [At(0.31, 700, 2)]}),
    "pytorch's MNIST example": ("Train Epoch: 1 [6400/60000 (11%)]\tLoss: 0.310000\n", {"train/Loss": [At(0.31, 6400, 1)]}),
    "Hugging Face": (
        "{'loss': 0.31, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.1}\n",
        {"loss": [At(0.31, None, 0.1)], "grad_norm": [At(1.2, None, 0.1)], "learning_rate": [At(5e-05, None, 0.1)]},
    ),
    "Hugging Face with quotes": ("{'loss': '0.31', 'epoch': '0.1'}\n", {"loss": [At(0.31, None, 0.1)]}),
    "Keras": (
        "Epoch 2/5\n1875/1875 [==============================] - 5s 3ms/step - loss: 0.2911 - val_loss: 0.1312\n",
        {"loss": [At(0.2911, 3750, 2)], "val_loss": [At(0.1312, 3750, 2)], "ms/step": [At(3, 3750, 2)]},
    ),
    "nanoGPT, evaluation": ("step 250: train loss 1.9, val loss 2.0\n", {"train loss": [At(1.9, 250)], "val loss": [At(2.0, 250)]}),
    "nanoGPT, step": ("iter 10: loss 2.3, time 100.00ms\n", {"loss": [At(2.3, 10)], "time": [At(100, 10)]}),
    "mmengine": (
        "2023/01/05 12:00:00 - mmengine - INFO - Epoch(train)  [2][  50/100]  lr: 1.0000e-04  eta: 1:00:00  time: 0.5  loss: 0.3105\n",
        {"train/lr": [At(1e-4, 150, 2)], "train/time": [At(0.5, 150, 2)], "train/loss": [At(0.3105, 150, 2)]},
    ),
    "detectron2": (
        "[04/12 10:38:20 d2.utils.events]:  eta: 0:05:00  iter: 19  total_loss: 2.102  lr: 0.0002  max_mem: 3000M\n",
        {"total_loss": [At(2.102, 19)], "lr": [At(0.0002, 19)], "max_mem": [At(3000, 19)]},
    ),
    "fairseq": (
        "2023-01-01 12:00:00 | INFO | train_inner | epoch 002:    100 / 3000 loss=5.1, num_updates=3100, gnorm=1.2\n",
        {"train/loss": [At(5.1, 3100, 2)], "train/gnorm": [At(1.2, 3100, 2)]},
    ),
    "fairseq with JSON": (
        '2023-01-01 12:00:00 | INFO | valid | {"epoch": 1, "valid_loss": "5.1", "valid_num_updates": "3000"}\n',
        {"val/valid_loss": [At(5.1, 3000, 1)]},
    ),
    "timm": (
        "Train: 1 [  50/100 ( 50%)]  Loss: 0.31 (0.32)  Time: 0.500s,  500.10/s  (0.6s,  400.1/s)  LR: 1.000e-04\n",
        {"train/Loss": [At(0.31, 50, 1)], "train/Time": [At(0.5, 50, 1)], "train//s": [At(500.1, 50, 1)], "train/LR": [At(1e-4, 50, 1)]},
    ),
    "Swin": ("[2025-10-19 10:38:20] Train: [1/30][50/1819]   tot_loss 0.3105 (0.3105)\n", {"train/tot_loss": [At(0.3105, 50, 1)]}),
    "names with digits": (" * Acc@1 7.42 Acc@5 60.03\n", {"Acc@1": [At(7.42)], "Acc@5": [At(60.03)]}),
    "names that differ in a digit": ("Acc@1: 7.42\nAcc@5: 60.03\nAcc@1: 8.5\n", {"Acc@1": [At(7.42), At(8.5)], "Acc@5": [At(60.03)]}),
    "nested JSON": ('{"step": 5, "train": {"loss": 0.5}, "val": {"loss": 0.6}}\n', {"train/loss": [At(0.5, 5)], "val/loss": [At(0.6, 5)]}),
    "a word language model": (
        "| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 45.20 | loss  7.63\n",
        {"lr": [At(20, 200, 1)], "ms/batch": [At(45.2, 200, 1)], "loss": [At(7.63, 200, 1)]},
    ),
    "a GAN": ("[1/5][0/1583]\tLoss_D: 1.5\tLoss_G: 2.3\n", {"Loss_D": [At(1.5, 0, 1)], "Loss_G": [At(2.3, 0, 1)]}),
    "cells": ("|    ep_rew_mean     | 29.5     |\n", {"ep_rew_mean": [At(29.5)]}),
    "Japanese": ("エポック 3/30：損失 0.3105，精度 0.0742\n", {"損失": [At(0.3105, None, 3)], "精度": [At(0.0742, None, 3)]}),
    "Japanese without blanks": ("エポック3 損失0.3105\n", {"損失": [At(0.3105, None, 3)]}),
    "Chinese": ("第3轮 训练损失：0.3105，验证精度：0.0742\n", {"训练损失": [At(0.3105, None, 3)], "验证精度": [At(0.0742, None, 3)]}),
    "Korean": ("[에폭 3] 손실: 0.3105 정확도=7.42%\n", {"손실": [At(0.3105, None, 3)], "정확도": [At(7.42, None, 3)]}),
    "colours": ("\x1b[32mstep\x1b[0m 7 \x1b[1mloss\x1b[0m 0.5\n", {"loss": [At(0.5, 7)]}),
    "infinity": ("step 3 loss inf grad_norm 2.5\n", {"loss": [At(math.inf, 3)], "grad_norm": [At(2.5, 3)]}),
    "negative and exponents": ("step 1 nll -1.5e-3\nstep 2 nll 2\n", {"nll": [At(-0.0015, 1), At(2, 2)]}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_points_of_a_layout(layout: str) -> None:
    content, expected = LAYOUTS[layout]
    assert points_of(content) == expected


def test_a_table_takes_its_names_from_its_head() -> None:
    found = points_of(
        "      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n"
        "        2/3      2.3G      1.162      2.541         26        640: 100%|██████████| 8/8 [00:01<00:00,  5.1it/s]\n"
        "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 4/4 [00:01<00:00,  2.0it/s]\n"
        "                   all        128        929       0.64      0.537      0.605      0.446\n"
    )
    assert found["box_loss"][0].value == 1.162
    assert found["box_loss"][0].epoch == 2
    assert found["mAP50-95"][0].value == 0.446
    assert found["it/s"][0].value == 5.1


def test_bare_columns_count_by_the_column_that_counts() -> None:
    found = points_of("".join(f"{i} {1 / (i + 1):.4f} {i / 9:.4f}\n" for i in range(5)))
    assert [at.step for at in found["column 2"]] == [0, 1, 2, 3, 4]
    assert found["column 2"][1].value == 0.5


def test_of_a_bar_that_is_drawn_over_each_state_counts_once() -> None:
    states = [f"Epoch 1:  {i * 25}%|{'█' * i}{' ' * (4 - i)}| {i}/4 [00:0{i}<00:01,  2.00it/s, loss={2 - i / 4:.2f}]" for i in range(1, 5)]
    found = points_of("\r".join([*states, states[-1], states[-1]]) + "\n")
    assert found["loss"] == [At(1.75, 1, 1), At(1.5, 2, 1), At(1.25, 3, 1), At(1.0, 4, 1)]


def test_bars_without_epochs_count_them_by_themselves() -> None:
    bar = "{p:3d}%|█| {i}/4 [00:01<00:01, 2.00it/s, loss={v:.2f}]"
    content = "".join(bar.format(p=i * 25, i=i, v=1 / (lap * 4 + i)) + ("\n" if i == 4 else "\r") for lap in range(3) for i in range(1, 5))
    assert [(at.step, at.epoch) for at in points_of(content)["loss"]][3:6] == [(4, 0), (5, 1), (6, 1)]


def test_two_runs_in_one_file_are_told_apart() -> None:
    one = "".join(f"epoch {e} train_loss {1 / (e + 1):.4f}\nvalidation: val_loss {2 / (e + 1):.4f}\n" for e in range(10))
    runs = {(fact["name"], fact["run"]): len(fact["values"]) for fact in facts_of(one * 3) if fact["k"] == "points"}
    assert runs == {(name, run): 10 for name in ("train_loss", "val_loss") for run in range(3)}


def test_a_step_back_to_a_checkpoint_is_no_new_run() -> None:
    content = "".join(f"step {s} loss 0.5\n" for s in [*range(0, 500, 10), *range(300, 600, 10)])
    assert {fact["run"] for fact in facts_of(content) if fact["k"] == "points"} == {0}


def test_lines_without_a_place_stand_where_the_last_one_stood() -> None:
    content = "=== Epoch 1 ===\nloss: 0.5\nvalidation accuracy: 0.25\n=== Epoch 2 ===\nloss: 0.4\nvalidation accuracy: 0.35\n"
    found = points_of(content)
    assert found["loss"] == [At(0.5, None, 1), At(0.4, None, 2)]
    assert found["validation accuracy"] == [At(0.25, None, 1), At(0.35, None, 2)]


def test_times_are_read_and_pauses_told() -> None:
    content = "".join(f"2025-10-19 10:{m:02d}:00,5 step {i} loss 0.5\n" for i, m in enumerate([0, 1, 2, 3, 33, 34]))
    (pauses,) = (fact for fact in facts_of(content) if fact["k"] == "pauses")
    assert pauses["longest"] == [[1800.0, 4, 5]]
    assert pauses["usual"] == 60


def test_a_clock_without_a_date_passes_midnight() -> None:
    content = "".join(f"[{h:02d}:00:00] step {i} loss 0.5\n" for i, h in enumerate([22, 23, 0, 1]))
    (points,) = (fact for fact in facts_of(content) if fact["k"] == "points")
    assert [b - a for a, b in zip(points["times"], points["times"][1:])] == [3600.0] * 3


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "shift_jis", "euc_kr", "gb18030"])
def test_other_encodings_keep_their_numbers(encoding: str) -> None:
    content = "".join(f"Epoch {e}: loss = {1 / (e + 1):.4f}\r\n" for e in range(5)).encode(encoding)
    assert [at.value for at in points_of(content)["loss"]] == [1.0, 0.5, 0.3333, 0.25, 0.2]


def test_settings_and_messages_are_kept() -> None:
    facts = facts_of("NUM_CLASSES: 12\noptimizer: adamw\n[Set] Loading 0 blur, 0 sharp files...\nWARNING: cache is cold\n")
    settings = {fact["name"]: fact["value"] for fact in facts if fact["k"] == "setting"}
    assert (settings["NUM_CLASSES"], settings["optimizer"]) == (12, "adamw")
    assert [fact["at"] for fact in facts if fact["k"] == "message"] == [3, 4]


def test_a_traceback_between_the_lines_is_a_crash() -> None:
    facts = facts_of(
        'step 1 loss 0.5\nTraceback (most recent call last):\n  File "a.py", line 3, in <module>\n    main()\nValueError: no\nstep 2 loss 0.4\n'
    )
    (crash,) = (fact for fact in facts if fact["k"] == "crash")
    assert (crash["kind"], crash["message"], crash["frames"]) == ("ValueError", "no", [["a.py", 3, "<module>"]])
    assert points_of("step 1 loss 0.5\n")["loss"] == [At(0.5, 1)]


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log read in pieces of a few bytes gives the same points as in one piece."""
    from trainsleuth.readers import text

    content = "".join(f"Epoch {e}/9\n{b}/30 [=] - loss: {1 / (e + b):.4f}\n" for e in range(1, 10) for b in (10, 20, 30))
    whole = points_of(content)
    monkeypatch.setattr(text, "BLOCK", 37)
    assert points_of(content) == whole


def test_lines_that_are_too_many_or_too_long_are_said_to_be_skipped() -> None:
    facts = facts_of(b"x" * (3 << 20) + b"\nstep 1 loss 0.5\n")
    assert any(fact["k"] == "skipped" for fact in facts)
