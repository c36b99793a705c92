"""Writes the logs of this folder: each as its framework prints it, from small trainings (Lightning, Hugging Face, tqdm) or from courses
such as trainings take. `python tests/corpus/make_logs.py` writes all of them anew.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOGS: dict[str, Callable[[random.Random], str | bytes]] = {}
START = 1_760_870_300


def log(name: str) -> Callable[[Callable[[random.Random], str | bytes]], None]:
    def keep(make: Callable[[random.Random], str | bytes]) -> None:
        LOGS[name] = make

    return keep


def falling(rng: random.Random, count: int, first: float, floor: float, noise: float = 0.05) -> Iterator[float]:
    """A loss as it usually goes: fast, then slowly, and never smooth."""
    for index in range(count):
        level = floor + (first - floor) * math.exp(-4 * index / count)
        yield max(1e-6, level * (1 + rng.gauss(0, noise)))


def stamp(seconds: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return time.strftime(form, time.gmtime(START + seconds))


def lines(*rows: str) -> str:
    return "\n".join(rows) + "\n"


# -- healthy ---------------------------------------------------------------------------------------------------------------


@log("healthy/plain_prints.log")
def _(rng: random.Random) -> str:
    losses = falling(rng, 30, 2.31, 0.21)
    return lines(*[f"Epoch {e}, loss: {v:.4f}, acc: {1 - v / 2.6:.4f}" for e, v in enumerate(losses, 1)])


@log("healthy/key_value.log")
def _(rng: random.Random) -> str:
    losses = list(falling(rng, 60, 4.8, 1.2))
    return lines(*[f"epoch={i // 20} step={i * 50} loss={v:.5f} lr={3e-4 * (1 - i / 61):.2e} gnorm={rng.uniform(0.5, 1.5):.3f}" for i, v in enumerate(losses)])


@log("healthy/mean_in_parentheses.log")
def _(rng: random.Random) -> str:
    losses, mean = falling(rng, 30, 0.9, 0.3), 0.9
    rows = []
    for index, value in enumerate(losses):
        mean = 0.9 * mean + 0.1 * value
        rows.append(f"[{index}/30] loss {value:.2f} ({mean:.2f})")
    return lines(*rows)


@log("healthy/pytorch_mnist.log")
def _(rng: random.Random) -> str:
    rows, losses = [], falling(rng, 5 * 10, 2.3, 0.06, 0.3)
    for epoch in range(1, 6):
        for batch in range(0, 60000, 6400):
            rows.append(f"Train Epoch: {epoch} [{batch}/60000 ({100 * batch / 60000:.0f}%)]\tLoss: {next(losses, 0.05):.6f}")
        right = 9500 + 90 * epoch
        rows += ["", f"Test set: Average loss: {0.3 / epoch:.4f}, Accuracy: {right}/10000 ({right / 100:.0f}%)", ""]
    return lines(*rows)


@log("healthy/tqdm_postfix.log")
def _(rng: random.Random) -> bytes:
    from tqdm import tqdm

    out = io.StringIO()
    losses = falling(rng, 4 * 25, 1.9, 0.4)
    for epoch in range(4):
        bar = tqdm(range(25), desc=f"Epoch {epoch}", file=out, ascii=False, ncols=100, mininterval=0)
        for _ in bar:
            bar.set_postfix(loss=f"{next(losses):.4f}")
    return out.getvalue().encode()


@log("healthy/lightning_bar.log")
def _(rng: random.Random) -> bytes:
    return run_program(LIGHTNING)[0]


@log("healthy/lightning_rich_bar.log")
def _(rng: random.Random) -> bytes:
    return run_program(LIGHTNING.replace("callbacks=[TQDMProgressBar()]", ""))[0]


@log("healthy/lightning_metrics.csv")
def _(rng: random.Random) -> bytes:
    return run_program(LIGHTNING)[1]


@log("healthy/hugging_face_trainer.log")
def _(rng: random.Random) -> bytes:
    return run_program(HUGGING_FACE)[0]


@log("healthy/keras.log")
def _(rng: random.Random) -> str:
    rows, losses = [], falling(rng, 12, 0.62, 0.09)
    for epoch, loss in enumerate(losses, 1):
        rows.append(f"Epoch {epoch}/12")
        parts = [f"{n:4d}/1875 [{'=' * (30 * n // 1875)}>{'.' * (29 - 30 * n // 1875)}] - ETA: {9 - n // 200}s - loss: {loss * 1.1:.4f} - accuracy: {1 - loss / 3:.4f}"
                 for n in (1, 600, 1200)]  # fmt: skip
        last = f"1875/1875 [{'=' * 30}] - 9s 5ms/step - loss: {loss:.4f} - accuracy: {1 - loss / 3.2:.4f} - val_loss: {loss * 1.05 + 0.02:.4f} - val_accuracy: {0.98 - loss / 3:.4f}"
        rows.append("\r".join([*parts, last]))
    return lines(*rows)


@log("healthy/keras3.log")
def _(rng: random.Random) -> str:
    rows, losses = [], falling(rng, 10, 1.62, 0.39)
    for epoch, loss in enumerate(losses, 1):
        rows.append(f"Epoch {epoch}/10")
        rows.append(f"\x1b[1m469/469\x1b[0m \x1b[32m{'━' * 20}\x1b[0m\x1b[37m\x1b[0m \x1b[1m3s\x1b[0m 6ms/step - accuracy: {1 - loss / 3:.4f} - loss: {loss:.4f} - val_accuracy: {0.97 - loss / 3:.4f} - val_loss: {loss + 0.03:.4f}")
    return lines(*rows)


@log("healthy/nanogpt.log")
def _(rng: random.Random) -> str:
    rows = ["tokens per iteration will be: 16,384", "found vocab_size = 65 (inside data/shakespeare_char/meta.pkl)", "number of parameters: 10.65M"]
    losses = list(falling(rng, 200, 4.27, 1.45, 0.02))
    for index, loss in enumerate(losses):
        if index % 25 == 0:
            rows.append(f"step {index * 10}: train loss {loss:.4f}, val loss {loss + 0.05 + index / 4000:.4f}")
        rows.append(f"iter {index * 10}: loss {loss:.4f}, time {rng.uniform(24, 26):.2f}ms, mfu {rng.uniform(15, 17):.2f}%")
    return lines(*rows)


@log("healthy/mmengine.log")
def _(rng: random.Random) -> str:
    rows, losses, t = [], falling(rng, 8 * 20, 1.9, 0.5), 0.0
    for epoch in range(1, 9):
        for batch in range(50, 1001, 50):
            t += 25 + rng.random()
            lr = 1e-4 * (1 + math.cos(math.pi * (epoch - 1 + batch / 1000) / 8)) / 2 + 1e-7
            loss = next(losses)
            rows.append(f"{stamp(t, '%Y/%m/%d %H:%M:%S')} - mmengine - INFO - Epoch(train)  [{epoch}][{batch:4d}/1000]  base_lr: {lr:.4e} lr: {lr:.4e}  eta: 1:{59 - epoch:02d}:00  time: 0.50{rng.randrange(99):02d}  data_time: 0.0100  memory: 3012  grad_norm: {rng.uniform(2, 4):.4f}  loss: {loss:.4f}  loss_cls: {loss * 0.6:.4f}  loss_bbox: {loss * 0.4:.4f}")
        t += 60
        rows.append(f"{stamp(t, '%Y/%m/%d %H:%M:%S')} - mmengine - INFO - Epoch(val)  [{epoch}][100/100]    accuracy/top1: {50 + 4 * epoch:.4f}  accuracy/top5: {80 + 2 * epoch:.4f}  data_time: 0.0120  time: 0.1040")
    return lines(*rows)


@log("healthy/detectron2.log")
def _(rng: random.Random) -> str:
    rows = []
    for index, loss in enumerate(falling(rng, 60, 2.4, 0.7)):
        t = index * 7.2
        lr = 0.0025 * min(1, (index * 20 + 19) / 200)
        rows.append(f"[{stamp(t, '%m/%d %H:%M:%S')} d2.utils.events]:  eta: 0:{30 - index // 2:02d}:10  iter: {index * 20 + 19}  total_loss: {loss:.3f}  loss_cls: {loss * 0.4:.4f}  loss_box_reg: {loss * 0.5:.4f}  loss_rpn_cls: {loss * 0.1:.4f}  time: 0.3612  last_time: 0.3590  data_time: 0.0081  last_data_time: 0.0052  lr: {lr:.6f}  max_mem: 2713M")
    return lines(*rows)


@log("healthy/fairseq.log")
def _(rng: random.Random) -> str:
    rows, losses, t = [], falling(rng, 5 * 20, 11.2, 4.3, 0.02), 0.0
    for epoch in range(1, 6):
        for batch in range(100, 2001, 100):
            t += 40
            update, loss = (epoch - 1) * 2000 + batch, next(losses)
            rows.append(f"{stamp(t)} | INFO | train_inner | epoch {epoch:03d}:  {batch:5d} / 2000 loss={loss:.3f}, nll_loss={loss - 0.9:.3f}, ppl={2 ** (loss - 0.9):.2f}, wps=25{rng.randrange(100, 999)}, ups=2.5, wpb=10000, bsz=400, num_updates={update}, lr={5e-4 * min(update / 4000, (4000 / update) ** 0.5):.6g}, gnorm={rng.uniform(1, 2):.3f}, clip=0, train_wall=39, gb_free=9.1, wall={t:.0f}")
        valid = loss + 0.1
        rows.append(f"{stamp(t + 5)} | INFO | valid | " + json.dumps({"epoch": epoch, "valid_loss": f"{valid:.3f}", "valid_nll_loss": f"{valid - 0.9:.3f}", "valid_ppl": f"{2 ** (valid - 0.9):.2f}", "valid_num_updates": f"{epoch * 2000}"}))
        rows.append(f"{stamp(t + 6)} | INFO | train | " + json.dumps({"epoch": epoch, "train_loss": f"{loss:.3f}", "train_num_updates": f"{epoch * 2000}"}))
    return lines(*rows)


@log("healthy/ultralytics.log")
def _(rng: random.Random) -> str:
    rows = ["Ultralytics 8.3.40 Python-3.11.7 torch-2.5.1 CPU", "train: Scanning datasets/coco8/labels/train... 128 images, 2 backgrounds, 0 corrupt: 100%|██████████| 128/128 [00:00<00:00, 512.2it/s]"]
    for epoch, loss in enumerate(falling(rng, 12, 2.9, 1.1), 1):
        rows += [
            "", "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size",
            f"{epoch:9d}/12 {'2.3G':>11}{loss * 0.4:11.3f}{loss:11.3f}{loss * 0.45:11.3f}{rng.randrange(9, 80):11d}{640:11d}: 100%|██████████| 8/8 [00:01<00:00,  5.12it/s]",
            "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 4/4 [00:00<00:00,  4.51it/s]",
            f"                   all        128        929      {0.5 + epoch * 0.02:.3f}      {0.4 + epoch * 0.02:.3f}      {0.42 + epoch * 0.03:.3f}      {0.25 + epoch * 0.02:.3f}",
        ]  # fmt: skip
    return lines(*rows)


@log("healthy/timm.log")
def _(rng: random.Random) -> str:
    rows, losses = [], falling(rng, 6 * 12, 6.9, 3.1, 0.02)
    for epoch in range(6):
        for batch in range(0, 600, 50):
            loss = next(losses)
            rows.append(f"Train: {epoch} [{batch:4d}/600 ({batch // 6:3d}%)]  Loss: {loss:.3g} ({loss * 1.01:.3g})  Time: 0.512s,  500.10/s  (0.530s,  483.20/s)  LR: {5e-4 * min(1, (epoch + 1) / 3):.3e}  Data: 0.010 (0.013)")
        for batch in range(0, 101, 50):
            top = 10 * epoch + 5 + rng.random()
            rows.append(f"Test: [{batch:4d}/100]  Time: 0.102 (0.134)  Loss:  {loss * 0.8:6.3f} ({loss * 0.82:6.3f})  Acc@1: {top:7.3f} ({top:7.3f})  Acc@5: {top + 20:7.3f} ({top + 20:7.3f})")
    return lines(*rows)


@log("healthy/swin.log")
def _(rng: random.Random) -> str:
    rows, losses, t = [], falling(rng, 5 * 20, 6.95, 3.8, 0.02), 0.0
    for epoch in range(5):
        for batch in range(0, 1000, 50):
            t += 30
            loss, lr = next(losses), 1e-3 * (epoch + batch / 1000 + 0.01) / 20
            rows.append(f"[{stamp(t)} swin_tiny_patch4] (main.py 213): INFO Train: [{epoch}/300][{batch}/1000]\teta 0:0{9 - batch // 112}:10 lr {lr:.9f}\t wd 0.0500\ttime 0.6012 (0.6112)\tloss {loss:.4f} ({loss * 1.01:.4f})\tgrad_norm {rng.uniform(1, 3):.4f} (1.8120)\tloss_scale 65536.0000 (65536.0000)\tmem 9212MB")
        rows.append(f"[{stamp(t + 20)} swin_tiny_patch4] (main.py 266): INFO  * Acc@1 {3 + 9 * epoch:.3f} Acc@5 {11 + 14 * epoch:.3f}")
    return lines(*rows)


@log("healthy/json_lines.jsonl")
def _(rng: random.Random) -> str:
    return lines(*[json.dumps({"step": i * 10, "time": START + i * 3.1, "train": {"loss": round(v, 5), "lr": 1e-3}, "gpu": {"mem": 2013}}) for i, v in enumerate(falling(rng, 80, 3.1, 0.8))])


@log("healthy/results.csv")
def _(rng: random.Random) -> str:
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(["epoch", "loss", "accuracy", "val_loss", "val_accuracy"])
    for epoch, loss in enumerate(falling(rng, 25, 1.1, 0.2)):
        table.writerow([epoch, f"{loss:.6f}", f"{1 - loss / 2:.6f}", f"{loss * 1.1:.6f}", f"{0.97 - loss / 2:.6f}"])
    return out.getvalue()


@log("healthy/bare_columns.txt")
def _(rng: random.Random) -> str:
    return lines(*[f"{i} {v:.4f} {1 - v / 3:.4f}" for i, v in enumerate(falling(rng, 40, 0.6931, 0.11))])


@log("healthy/dcgan.log")
def _(rng: random.Random) -> str:
    rows = []
    for epoch in range(5):
        for batch in range(0, 1583, 50):
            d, g = abs(rng.gauss(0.7, 0.3)), abs(rng.gauss(3.0, 1.5)) * (1 + epoch / 3)
            rows.append(f"[{epoch}/5][{batch}/1583]\tLoss_D: {d:.4f}\tLoss_G: {g:.4f}\tD(x): {rng.uniform(0.6, 0.9):.4f}\tD(G(z)): {rng.uniform(0.1, 0.4):.4f} / {rng.uniform(0.02, 0.2):.4f}")
    return lines(*rows)


@log("healthy/reinforce.log")
def _(rng: random.Random) -> str:
    rows, mean = [], 10.0
    for episode in range(10, 500, 10):
        reward = max(8.0, min(500.0, rng.gauss(episode * 0.6, 60)))
        mean = 0.95 * mean + 0.05 * reward
        rows.append(f"Episode {episode}\tLast reward: {reward:.2f}\tAverage reward: {mean:.2f}")
    return lines(*rows)


@log("healthy/ppo_table.log")
def _(rng: random.Random) -> str:
    rows = ["Using cpu device"]
    for i in range(1, 16):
        row = [("rollout/", ""), ("   ep_len_mean", f"{20 + 9 * i + rng.random():.1f}"), ("   ep_rew_mean", f"{20 + 9 * i + rng.random():.1f}"), ("time/", ""), ("   fps", f"{900 + rng.randrange(90)}"),
               ("   iterations", str(i)), ("   total_timesteps", str(2048 * i)), ("train/", ""), ("   approx_kl", f"{rng.uniform(0.005, 0.02):.9f}"), ("   entropy_loss", f"{-0.68 + i * 0.01:.3f}"),
               ("   explained_variance", f"{rng.uniform(0, 0.9):.3f}"), ("   learning_rate", "0.0003"), ("   loss", f"{rng.uniform(5, 60):.3g}"), ("   policy_gradient_loss", f"{rng.uniform(-0.03, -0.01):.4f}"),
               ("   value_loss", f"{rng.uniform(20, 90):.3g}")]  # fmt: skip
        rows += ["-" * 41] + [f"| {name:<23} | {value:<11} |" for name, value in row] + ["-" * 41]
    return lines(*rows)


@log("healthy/warm_restarts.log")
def _(rng: random.Random) -> str:
    rows = []
    for epoch in range(60):
        phase = (epoch % 20) / 20
        loss = (1.6 - 0.35 * (epoch // 20)) * (1 - 0.6 * phase) * (1 + rng.gauss(0, 0.03))
        rows.append(f"epoch {epoch} lr {0.1 * (1 + math.cos(math.pi * phase)) / 2:.6f} train_loss {loss:.4f} val_loss {loss * 1.1:.4f} val_acc {0.9 - loss / 3:.4f}")
    return lines(*rows)


@log("healthy/one_cycle.log")
def _(rng: random.Random) -> str:
    rows = []
    for step in range(0, 3000, 30):
        share = step / 3000
        lr = 0.01 * (share / 0.3 if share < 0.3 else (1 + math.cos(math.pi * (share - 0.3) / 0.7)) / 2) + 4e-8
        loss = (2.3 * math.exp(-3 * share) + 0.25 * math.exp(-((share - 0.3) ** 2) / 0.02)) * (1 + rng.gauss(0, 0.05))
        rows.append(f"step {step:>5} | loss {loss:.4f} | lr {lr:.3e} | gnorm {rng.uniform(0.4, 1.2):.2f}")
    return lines(*rows)


@log("healthy/fine_tuning_from_a_good_start.log")
def _(rng: random.Random) -> str:
    rows = []
    for step in range(0, 2000, 20):
        loss = abs(0.142 - step * 4e-6 + rng.gauss(0, 0.03)) + 0.01
        rows.append(f"{{'loss': {loss:.4f}, 'grad_norm': {rng.uniform(0.3, 2):.4f}, 'learning_rate': {2e-5 * (1 - step / 2000):.6e}, 'epoch': {step / 1000:.2f}}}")
    return lines(*rows)


@log("healthy/noisy_small_batches.log")
def _(rng: random.Random) -> str:
    rows = []
    for step in range(300):
        rows.append(f"it {step * 10} | loss {abs(rng.gauss(1.2 - step * 0.001, 0.6)):.3f} | acc {rng.choice((0, 0.25, 0.5, 0.75, 1.0)):.2f}")
    return lines(*rows)


@log("healthy/converged_and_resumed.log")
def _(rng: random.Random) -> str:
    rows = ["Resuming from checkpoint runs/exp3/last.pt (epoch 180)", "num_classes: 10"]
    for epoch in range(181, 241):
        rows.append(f"Epoch [{epoch}/240] train_loss: {0.0123 + rng.gauss(0, 0.0006):.4f} val_loss: {0.2115 + rng.gauss(0, 0.002):.4f} val_acc: {95.2 + rng.gauss(0, 0.05):.2f}% lr: {1e-5:.6f}")
    return lines(*rows)


@log("healthy/early_stopped.log")
def _(rng: random.Random) -> str:
    rows, val = [], 1.0
    for epoch, train in enumerate(falling(rng, 22, 1.2, 0.2, 0.02), 1):
        val = train + 0.15 if epoch < 17 else val * 1.015
        rows.append(f"Epoch {epoch:03d} | train loss {train:.4f} | val loss {val:.4f}")
    return lines(*rows, "Early stopping: no improvement for 5 epochs. Best epoch: 16, best val loss 0.4012")


@log("healthy/multi_task.log")
def _(rng: random.Random) -> str:
    rows = []
    for step, loss in enumerate(falling(rng, 120, 5.0, 2.0)):
        aux = 0.3 + step * 0.004 + rng.gauss(0, 0.02)  # one task gives way to another
        rows.append(f"[step {step * 25}] loss={loss + aux:.4f} loss_depth={loss:.4f} loss_normal={aux:.4f} loss_seg={abs(rng.gauss(0.9, 0.05)):.4f} miou={0.2 + step * 0.003:.4f}")
    return lines(*rows)


@log("healthy/japanese.log")
def _(rng: random.Random) -> str:
    return lines("学習を開始します", *[f"エポック {e}/25：損失 {v:.4f}，精度 {1 - v / 3:.4f}，検証損失 {v * 1.05:.4f}" for e, v in enumerate(falling(rng, 25, 2.5, 0.4), 1)])


@log("healthy/chinese.log")
def _(rng: random.Random) -> str:
    return lines("加载了 5000 个样本", *[f"第{e}轮 训练损失：{v:.4f}，验证损失：{v * 1.04:.4f}，验证准确率：{100 - 30 * v:.2f}%" for e, v in enumerate(falling(rng, 20, 2.4, 0.5), 1)])


@log("healthy/korean.log")
def _(rng: random.Random) -> str:
    return lines("데이터 로드 완료", *[f"[에폭 {e}] 손실: {v:.4f} 정확도: {1 - v / 3:.4f} 학습률: 0.001" for e, v in enumerate(falling(rng, 20, 2.4, 0.5), 1)])


@log("healthy/mojibake.log")
def _(rng: random.Random) -> str:
    rows = [f"第{e}轮 损失：{v:.4f} loss={v:.4f} acc={1 - v / 3:.4f}" for e, v in enumerate(falling(rng, 20, 2.4, 0.5), 1)]
    return lines(*rows).encode().decode("cp1252", "replace")


@log("healthy/shift_jis.log")
def _(rng: random.Random) -> bytes:
    return lines(*[f"エポック{e} 損失 loss={v:.4f} 精度 acc={1 - v / 3:.4f}" for e, v in enumerate(falling(rng, 20, 2.4, 0.5), 1)]).encode("shift_jis")


@log("healthy/powershell_utf16.log")
def _(rng: random.Random) -> bytes:
    return lines(*[f"Epoch {e}: loss = {v:.4f}" for e, v in enumerate(falling(rng, 20, 2.4, 0.5), 1)]).replace("\n", "\r\n").encode("utf-16")


@log("healthy/colours.log")
def _(rng: random.Random) -> str:
    return lines(*[f"\x1b[32m{stamp(i * 5)}\x1b[0m \x1b[1mINFO\x1b[0m train | \x1b[36mstep\x1b[0m {i * 100} \x1b[36mloss\x1b[0m {v:.4f}" for i, v in enumerate(falling(rng, 40, 2.4, 0.5))])


@log("healthy/two_runs.log")
def _(rng: random.Random) -> str:
    rows = []
    for run in range(2):
        rows.append(f"=== run {run} ===")
        rows += [f"{stamp(run * 90000 + e * 60)} epoch {e} loss {v:.4f} val_loss {v * 1.1:.4f}" for e, v in enumerate(falling(rng, 30, 2.0, 0.3))]
    return lines(*rows)


@log("healthy/resumed.log")
def _(rng: random.Random) -> str:
    values = list(falling(rng, 60, 2.0, 0.3))
    rows = [f"step {i * 10} loss {values[i]:.4f}" for i in range(35)] + ["Resuming from step 300"]
    return lines(*rows, *[f"step {i * 10} loss {values[i]:.4f}" for i in range(30, 60)])


@log("healthy/mixed_precision_skips.log")
def _(rng: random.Random) -> str:
    rows = []
    for i, v in enumerate(falling(rng, 100, 3.0, 0.6)):
        norm = "inf" if i in (0, 1, 40) else f"{rng.uniform(0.5, 2):.4f}"
        rows.append(f"step {i * 20}: loss {v:.4f}, grad_norm {norm}, loss_scale {65536 / 2 ** (i > 1):.0f}, lr 3.0e-04")
    return lines(*rows)


@log("healthy/word_language_model.log")
def _(rng: random.Random) -> str:
    rows, losses = [], falling(rng, 6 * 14, 7.6, 4.8, 0.01)
    for epoch in range(1, 7):
        lr = 20.0 if epoch < 5 else 5.0
        for batch in range(200, 2983, 200):
            loss = next(losses)
            rows.append(f"| epoch {epoch:3d} | {batch:5d}/ 2983 batches | lr {lr:02.2f} | ms/batch {rng.uniform(11, 12):5.2f} | loss {loss:5.2f} | ppl {math.exp(loss):8.2f}")
        rows += ["-" * 89, f"| end of epoch {epoch:3d} | time: 36.12s | valid loss {loss + 0.1:5.2f} | valid ppl {math.exp(loss + 0.1):8.2f}", "-" * 89]
    return lines(*rows)


@log("healthy/diffusion.log")
def _(rng: random.Random) -> str:
    return lines(*[f"Steps: {i * 10}/2000, loss={max(0.001, rng.lognormvariate(-2.5, 0.8)):.4f}, lr=1e-05" for i in range(200)])


@log("healthy/contrastive.log")
def _(rng: random.Random) -> str:
    return lines("num_classes: 10", *[f"Epoch {e} InfoNCE loss {5.545 - 0.9 * (1 - math.exp(-e / 30)) + rng.gauss(0, 0.02):.4f} lr 0.03" for e in range(1, 81)])


@log("healthy/log_likelihood.log")
def _(rng: random.Random) -> str:
    return lines(*[f"iteration {i * 100} nll {-1.0 - 3 * (1 - math.exp(-i / 20)) + rng.gauss(0, 0.1):.3f} bits/dim {3.6 - 0.4 * (1 - math.exp(-i / 20)):.3f}" for i in range(80)])


@log("healthy/linear_decay_to_zero.log")
def _(rng: random.Random) -> str:
    return lines(*[f"{{'loss': {v:.4f}, 'learning_rate': {5e-5 * (1 - i / 60):.3e}, 'epoch': {i / 20:.2f}}}" for i, v in enumerate(falling(rng, 61, 1.0, 0.2))])


@log("healthy/detr.log")
def _(rng: random.Random) -> str:
    rows, losses = [], falling(rng, 6 * 10, 21.0, 6.0, 0.02)
    for epoch in range(6):
        for batch in range(0, 1000, 100):
            loss = next(losses)
            rows.append(f"Epoch: [{epoch}]  [{batch:4d}/1000]  eta: 0:08:{batch % 60:02d}  lr: 0.000100  class_error: {80 - epoch * 5:.2f}  loss: {loss:.4f} ({loss * 1.1:.4f})  loss_ce: {loss / 3:.4f} ({loss / 3:.4f})  loss_bbox: {loss / 4:.4f} ({loss / 4:.4f})  time: 0.3412  data: 0.0101  max mem: 3512")
        rows += [f"Averaged stats: lr: 0.000100  class_error: 70.00  loss: {loss:.4f} ({loss:.4f})", f" Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = {0.05 * epoch:.3f}"]
    return lines(*rows)


@log("healthy/megatron.log")
def _(rng: random.Random) -> str:
    return lines(*[f" [{stamp(i * 12)}] iteration {i * 10:8d}/  500000 | consumed samples: {i * 5120:12d} | elapsed time per iteration (ms): {rng.uniform(1230, 1240):.1f} | learning rate: {1.5e-4 * min(1, i / 40):.6E} | global batch size:   512 | lm loss: {v:.6E} | loss scale: 65536.0 | grad norm: {rng.uniform(1, 2):.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |" for i, v in enumerate(falling(rng, 100, 10.8, 4.2, 0.01), 1)])


@log("healthy/deepspeed.log")
def _(rng: random.Random) -> str:
    rows = []
    for i, v in enumerate(falling(rng, 50, 2.9, 0.6), 1):
        rows.append(f"steps: {i * 10} loss: {v:.4f} iter time (s): 0.512 samples/sec: 62.500")
        rows.append(f"[{stamp(i * 5)},123] [INFO] [logging.py:96:log_dist] [Rank 0] step={i * 10}, skipped=0, lr=[5e-05, 5e-05], mom=[(0.9, 0.999), (0.9, 0.999)]")
    return lines(*rows)


@log("healthy/torchtitan.log")
def _(rng: random.Random) -> str:
    return lines(*[f"[titan] {stamp(i * 3)},123 - root - INFO - \x1b[31mstep: {i:2d}  \x1b[32mloss: {v:7.4f}  \x1b[38;2;180;60;0mgrad_norm: {rng.uniform(1, 2):.4f}  \x1b[33mmemory: 12.34GiB(13.00%)  \x1b[34mtps: 3,456  \x1b[36mtflops: 12.34  \x1b[35mmfu: 12.34%\x1b[39m" for i, v in enumerate(falling(rng, 60, 12.2, 5.1, 0.01), 1)])


@log("healthy/fastai.log")
def _(rng: random.Random) -> str:
    rows = [f"{e}         {v:.6f}    {v + 0.05:.6f}    {0.8 + 0.01 * e:.6f}  00:12     " for e, v in enumerate(falling(rng, 12, 0.6, 0.1))]
    return lines("epoch     train_loss  valid_loss  accuracy  time    ", *rows)


@log("healthy/xgboost.log")
def _(rng: random.Random) -> str:
    return lines(*[f"[{i}]\ttrain-logloss:{v:.5f}\tvalid-logloss:{v * 0.9 + 0.08:.5f}" for i, v in enumerate(falling(rng, 100, 0.68, 0.05, 0))])


@log("healthy/paddle.log")
def _(rng: random.Random) -> str:
    losses = falling(rng, 75, 3.0, 0.4)
    return lines(*[f"[{stamp(e * 900 + b, '%Y/%m/%d %H:%M:%S')}] ppcls INFO: [Train][Epoch {e}/120][Iter: {b}/500]lr(LinearWarmup): 0.00100000, top1: {0.1 + e * 0.2:.5f}, top5: {0.4 + e * 0.15:.5f}, CELoss: {v:.5f}, loss: {v:.5f}, batch_cost: 0.30s, reader_cost: 0.1, ips: 200.1 samples/s, eta: 1 day, 2:03:04" for e in range(1, 4) for b, v in zip(range(0, 500, 20), losses)])


@log("healthy/espnet.log")
def _(rng: random.Random) -> str:
    losses = falling(rng, 40, 60.0, 8.0)
    return lines(*[f"[host] {stamp(e * 3000 + b)},345 (trainer:737) INFO: {e}epoch:train:{b - 99}-{b}batch: iter_time=0.12, forward_time=0.2, loss_ctc={v * 1.4:.3f}, loss_att={v * 0.7:.3f}, acc={0.2 * e + b / 9000:.3f}, loss={v:.3f}, backward_time=0.3, grad_norm={rng.uniform(9, 14):.3f}, clip=100.000, loss_scale=1.0, optim_step_time=0.05, optim0_lr0={1.2e-5 * (e * 1000 + b):.3e}, train_time=1.5" for e in range(1, 5) for b, v in zip(range(100, 1001, 100), losses)])


@log("healthy/loguru.log")
def _(rng: random.Random) -> str:
    return lines(*[f"{stamp(i * 5)}.123 | INFO     | __main__:train:45 - epoch {1 + i // 20}/10 step {i % 20 * 15}/300 | loss: {v:.4f} | lr: 1.0e-04 | 12.3 it/s | ETA 00:12:11" for i, v in enumerate(falling(rng, 80, 2.1, 0.5))])


@log("healthy/pytorch_tutorial.log")
def _(rng: random.Random) -> str:
    rows, losses = [], falling(rng, 40, 2.3, 0.4)
    for epoch in range(1, 5):
        rows += [f"Epoch {epoch}", "-" * 31, *[f"loss: {v:>7f}  [{b:>5d}/60000]" for b, v in zip(range(64, 60000, 6400), losses)]]
        rows += ["Test Error: ", f" Accuracy: {40 + 10 * epoch:.1f}%, Avg loss: {2 / epoch:>8f} "]
    return lines(*rows)


@log("healthy/several_ranks.log")
def _(rng: random.Random) -> str:
    return lines(*[f"[rank{r}]: {stamp(i * 10)} - INFO - __main__ - step {i * 10}: loss={v + rng.random() * 0.1:.4f}" for i, v in enumerate(falling(rng, 40, 2.1, 0.5)) for r in range(4)])


# -- sick --------------------------------------------------------------------------------------------------------------------


@log("sick/stall-uniform-predictions.log")
def _(rng: random.Random) -> str:
    rows = ["TRAIN:", "  ACCUMULATION_STEPS: 8", "DATA:", "  NUM_CLASSES: 12"]
    for epoch in range(4):
        rows += [f"[{stamp(epoch * 2000 + batch)}] Train: [{epoch}/30][{batch}/1819]\ttot_loss 0.3105 (0.3105)\tlr {8e-6 * min(1, (epoch + batch / 1819 + 0.001) / 2):.9f}" for batch in range(0, 1819, 200)]
        rows.append(" * Acc@1 0.0742 Acc@5 0.6003")
    return lines(*rows)


@log("sick/stall-flat-loss.log")
def _(rng: random.Random) -> str:
    return lines(*[f"Epoch {e}: train_loss=5.81274 val_loss=5.79913" for e in range(40)])


@log("sick/stall-learning-rate-zero.log")
def _(rng: random.Random) -> str:
    return lines(*[f"step {i * 10} loss 4.18233 lr 0.000e+00" for i in range(30)])


@log("sick/stall-chance-accuracy.log")
def _(rng: random.Random) -> str:
    return lines("num_classes: 10", *[f"epoch {e} train_loss {abs(rng.gauss(2.31, 0.02)):.3f} val_acc {0.1 + rng.gauss(0, 0.004):.4f}" for e in range(20)])


@log("sick/stall-metric-does-not-follow-loss.log")
def _(rng: random.Random) -> str:
    return lines(*[f"Epoch {e}: ctc_loss {v:.4f} val_cer {0.985 + rng.gauss(0, 0.004):.4f} val_acc {abs(rng.gauss(0.003, 0.002)):.4f}" for e, v in enumerate(falling(rng, 30, 14.2, 1.9))])


@log("sick/nan-loss-not-finite.log")
def _(rng: random.Random) -> str:
    rows = []
    for i, v in enumerate(falling(rng, 60, 2.0, 0.8)):
        broken, norm = i >= 37, rng.uniform(0.8, 1.4) * (40 if i in (35, 36) else 1)
        rows.append(f"step {i * 50} | loss {'nan' if broken else f'{v:.4f}'} | grad_norm {'nan' if broken else f'{norm:.3f}'} | lr 2.0e-04")
    return lines(*rows)


@log("sick/nan-diverged.log")
def _(rng: random.Random) -> str:
    values = [2.0 * math.exp(-i / 10) + 0.5 if i < 40 else 0.55 * 1.25 ** (i - 39) for i in range(60)]
    return lines(*[f"iter {i * 10}: loss {v * (1 + rng.gauss(0, 0.03)):.4f}, lr 1.00e-01" for i, v in enumerate(values)])


@log("sick/validation-overfitting.log")
def _(rng: random.Random) -> str:
    return lines(*[f"Epoch {e}/50 - loss: {v:.4f} - val_loss: {0.9 - 0.04 * e if e < 10 else 0.5 + 0.02 * (e - 10):.4f}" for e, v in enumerate(falling(rng, 50, 1.0, 0.02))])


@log("sick/schedule-decays-to-zero-early.log")
def _(rng: random.Random) -> str:
    return lines(*[f"epoch {e} loss {v:.4f} lr {max(0.0, 1e-3 * (1 - e / 20)):.3e}" for e, v in enumerate(falling(rng, 60, 2.0, 1.2))])


@log("sick/schedule-warmup-never-ends.log")
def _(rng: random.Random) -> str:
    return lines("learning_rate: 0.001", *[f"step {i * 10} loss {2.31 + rng.gauss(0, 0.004):.4f} lr {1e-3 * (i + 1) / 5000:.4e}" for i in range(60)])


@log("sick/hang-standstill.log")
def _(rng: random.Random) -> str:
    t, rows = 0.0, []
    for i, v in enumerate(falling(rng, 80, 2.0, 0.5)):
        t += 12 + rng.random() + (9600 if i == 51 else 0)
        rows.append(f"[{stamp(t)}] step {i * 20} loss {v:.4f}")
    return lines(*rows)


@log("sick/hang-backward.log")
def _(rng: random.Random) -> str:
    return lines(
        "[2025-11-02 14:03:11] batch 0: forward done in 0.052s", "[2025-11-02 14:03:11] batch 0: CTC loss 13.8112 in 0.001s",
        "[2025-11-02 14:03:11] batch 0: calling loss.backward()", "^CTraceback (most recent call last):",
        '  File "train_crnn.py", line 143, in <module>', "    main()", '  File "train_crnn.py", line 118, in main', "    loss.backward()",
        '  File "/usr/lib/python3/site-packages/torch/_tensor.py", line 581, in backward', "    torch.autograd.backward(",
        '  File "/usr/lib/python3/site-packages/torch/autograd/__init__.py", line 347, in backward', "    _engine_run_backward(",
        '  File "/usr/lib/python3/site-packages/torch/autograd/graph.py", line 825, in _engine_run_backward',
        "    return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass", "KeyboardInterrupt",
    )  # fmt: skip


@log("sick/speed-slows-down.log")
def _(rng: random.Random) -> str:
    t, rows = 0.0, []
    for i, v in enumerate(falling(rng, 160, 2.0, 0.5)):
        t += 10 * (1 + i / 50)
        rows.append(f"{stamp(t)} INFO step={i * 100} loss={v:.4f}")
    return lines(*rows)


@log("sick/data-empty-dataset.log")
def _(rng: random.Random) -> str:
    return lines("[SpikeDeblurDataset] Loading 0 blur, 0 sharp, 0 voxel files...", "[SpikeDeblurDataset] Cache preloaded: 0 items, 0.0GB / 30.0GB")


@log("sick/cache-empty.log")
def _(rng: random.Random) -> str:
    rows = ["Found 4800 images in data/train", "feature cache: 0 entries (budget 8.0 GB)"]
    return lines(*rows, *[f"epoch {e} loss {v:.4f} data_time 1.812" for e, v in enumerate(falling(rng, 12, 2.0, 0.5))])


@log("sick/cache-stale-entries.log")
def _(rng: random.Random) -> str:
    return lines(
        "[INFO] ✓ Using .npz maps (from cache or disk): 16/16 samples (100.0%)", *[f"Epoch 0 step {i} loss {2 - i / 20:.4f}" for i in range(10)],
        *["[WARNING] ⚠ Fallback to on-the-fly generation: 16/16 samples (100.0%)", "[INFO] [CACHE HIT] Returning cached tensor for index 0"] * 3,
        *[f"Epoch 1 step {i} loss {1.4 - i / 20:.4f}" for i in range(10)],
    )  # fmt: skip


@log("sick/precision-accuracy-loss.log")
def _(rng: random.Random) -> str:
    return lines("Run b1bipuoz (16-bit): H-mean 0.7816, Runtime 16m 44s", "Run nuhmawgr (32-bit): H-mean 0.8863, Runtime 19m 39s")


@log("sick/logging-step-not-increasing.log")
def _(rng: random.Random) -> str:
    rows = []
    for i, v in enumerate(falling(rng, 40, 2.0, 0.5)):
        rows.append(f"step {i * 10} loss {v:.4f}")
        if i % 10 == 9:
            rows.append(f"wandb: WARNING Tried to log to step {i // 10} that is less than the current step {i * 10}. Steps must be monotonically increasing, so this data will be ignored. See https://wandb.me/define-metric to log data out of order.")
    return lines(*rows)


@log("sick/logging-nan-hidden.log")
def _(rng: random.Random) -> str:
    rows = []
    for i, v in enumerate(falling(rng, 40, 1.5, 0.7)):
        rows.append(f"{{'loss': {v if i < 20 else 0.0:.4f}, 'grad_norm': {'nan' if i >= 20 else f'{rng.uniform(0.5, 2):.4f}'}, 'learning_rate': 2e-05, 'epoch': {i / 10:.1f}}}")
    return lines(*rows)


@log("sick/crash-exception.log")
def _(rng: random.Random) -> str:
    return lines(
        *[f"step {i} loss {v:.4f}" for i, v in enumerate(falling(rng, 12, 2.0, 1.5))], "Traceback (most recent call last):",
        '  File "main.py", line 88, in <module>', "    train(model, loader)", '  File "main.py", line 51, in train', "    logits = model(images)",
        '  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1751, in _wrapped_call_impl', "    return self._call_impl(*args, **kwargs)",
        "ValueError: image 4711 has three boxes and two labels",
    )  # fmt: skip


# -- programs that real frameworks log for --------------------------------------------------------------------------------------

LIGHTNING = """
import sys, torch, lightning as L
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger
torch.manual_seed(0)
x = torch.randn(640, 8); y = x[:, :4].argmax(1)
class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True, on_step=True, on_epoch=True)
        return loss
    def validation_step(self, batch, _):
        out = self.net(batch[0])
        self.log("val_loss", torch.nn.functional.cross_entropy(out, batch[1]), prog_bar=True)
        self.log("val_acc", (out.argmax(1) == batch[1]).float().mean(), prog_bar=True)
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)
data = torch.utils.data.TensorDataset(x, y)
part = lambda a, b, s: torch.utils.data.DataLoader(torch.utils.data.Subset(data, range(a, b)), 32, shuffle=s)
logger = CSVLogger(sys.argv[1], name="csv")
trainer = L.Trainer(max_epochs=6, logger=logger, accelerator="cpu", enable_checkpointing=False, enable_model_summary=False, log_every_n_steps=4, callbacks=[TQDMProgressBar()])
trainer.fit(Net(), part(0, 512, True), part(512, 640, False))
import shutil; shutil.copy(logger.log_dir + "/metrics.csv", sys.argv[1] + "/table")
"""

HUGGING_FACE = """
import sys, torch
from transformers import Trainer, TrainingArguments
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    def forward(self, x=None, labels=None):
        logits = self.net(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}
x = torch.randn(400, 8); y = x[:, :4].argmax(1)
rows = [{"x": x[i], "labels": y[i]} for i in range(400)]
arguments = TrainingArguments(sys.argv[1], num_train_epochs=6, logging_steps=5, eval_strategy="epoch", save_strategy="no", report_to=[],
                              learning_rate=1e-2, use_cpu=True, per_device_train_batch_size=16)
accuracy = lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}
Trainer(Net(), arguments, train_dataset=rows[:320], eval_dataset=rows[320:], compute_metrics=accuracy).train()
"""


def run_program(source: str) -> tuple[bytes, bytes]:
    """What a small training prints, and the table it leaves, if it leaves one."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(source)
        done = subprocess.run([sys.executable, str(script), folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=True)
        table = Path(folder) / "table"
        return done.stdout.replace(folder.encode(), b"runs").replace(sys.prefix.encode(), b"venv"), table.read_bytes() if table.exists() else b""


def main() -> None:
    for name, make in LOGS.items():
        if len(sys.argv) > 1 and not any(part in name for part in sys.argv[1:]):
            continue
        content = make(random.Random(name))
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        print(f"{name:<50} {path.stat().st_size:>8,}")


if __name__ == "__main__":
    main()
