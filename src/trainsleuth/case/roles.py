"""What a logged name stands for: a loss, a score, a learning rate … taken from the words of the name, in the languages of our users."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Role = Literal["loss", "score", "error", "rate", "gradient", "speed", "duration", "memory", "scale", "reward", "value", "other"]
Split = Literal["train", "val", ""]

_TRAIN = frozenset(("train", "training", "trn", "tr"))
_HELD_OUT = frozenset(("val", "valid", "validation", "eval", "evaluation", "test", "testing", "dev", "holdout"))
_WIDE_TRAIN = ("学習", "訓練", "训练", "학습", "훈련")
_WIDE_HELD_OUT = ("検証", "評価", "テスト", "验证", "测试", "评估", "검증", "평가", "테스트")
_NOT_A_COURSE = frozenset(("best", "min", "max", "target", "threshold", "weight", "weights", "lambda", "coef", "coeff", "std", "var",
                           "ema", "avg5", "patience", "alpha", "beta", "gamma", "margin", "temperature"))  # fmt: skip
_LOSS = frozenset(("loss", "losses", "nll", "bce", "xent", "objective", "criterion", "crossentropy", "elbo"))
_ANY_LOSS = re.compile(r"[a-z0-9]*loss(?:es)?\d*")  # celoss, logloss, loss1
_WIDE_LOSS = ("損失", "ロス", "损失", "손실", "誤差")
_SCORE = frozenset(("acc", "acc1", "acc5", "accuracy", "top1", "top5", "acc@1", "acc@5", "prec@1", "prec@5", "f1", "map", "map50", "map@", "iou",
                    "miou", "dice", "auc", "auroc", "precision", "recall", "bleu", "rouge", "hmean", "psnr", "ssim", "ndcg", "hit", "hits", "mrr",
                    "r2", "kappa", "mcc", "ap", "ap50", "ap75", "em"))  # fmt: skip
_WIDE_SCORE = ("精度", "正解率", "准确率", "正确率", "정확도", "適合率", "再現率")
_ERROR = frozenset(("cer", "wer", "err", "error", "ppl", "perplexity", "mae", "rmse", "mse", "fid", "mape"))
_SPEED = frozenset(("throughput", "wps", "ups", "fps", "ips", "mfu", "tps", "sps"))
_DURATION = frozenset(("time", "eta", "runtime", "elapsed", "duration", "seconds", "sec", "wall", "dt"))
_MEMORY = frozenset(("mem", "memory", "vram", "ram", "gpu", "rss"))
_REWARD = frozenset(("reward", "rewards", "return", "returns", "rew", "ret"))
_ADVERSARIAL = frozenset(("d", "g", "gen", "disc", "generator", "discriminator", "adv", "critic", "actor", "policy", "gan", "vf", "td", "q", "qf",
                          "kl", "entropy", "reward", "rew", "return", "dis", "netd", "netg", "gp", "wasserstein"))  # fmt: skip


@lru_cache(maxsize=4096)
def words_of(name: str) -> tuple[str, ...]:
    """`trainLoss_cls/avg` → train, loss, cls, avg."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return tuple(word for word in re.split(r"[^\w@]+|_", spaced.lower()) if word)


@lru_cache(maxsize=4096)
def split_of(name: str) -> Split:
    words = words_of(name)
    if any(word in _HELD_OUT for word in words) or any(wide in name for wide in _WIDE_HELD_OUT):
        return "val"
    return "train" if any(word in _TRAIN for word in words) or any(wide in name for wide in _WIDE_TRAIN) else ""


@lru_cache(maxsize=4096)
def role_of(name: str) -> Role:
    words = frozenset(words_of(name))
    low = name.lower()
    if {"lr", "lr0", "lr1", "lr2"} & words or {"learning", "rate"} <= words or "学習率" in name or "学习率" in name or "학습률" in name:
        return "rate"
    if "scale" in words or "scaler" in words:
        return "scale"
    if words & {"gnorm", "gradnorm"} or (words & {"grad", "grads", "gradient", "gradients"} and "norm" in words) or low == "norm":
        return "gradient"
    if re.search(r"(?:^|\w)/(?:s|sec|second|it|step|iter|batch|epoch|example|sample)$", low):
        return "speed" if re.search(r"/(?:s|sec|second)$", low) else "duration"
    if {"per", "second"} <= words or {"per", "sec"} <= words or words & _SPEED:
        return "speed"
    averaged = {"ema"} if split_of(name) == "val" else set()  # of the loss it is a smoothed copy; of a validation, another model
    if words & _NOT_A_COURSE - averaged:
        return "other"
    if words & _LOSS or words - _TRAIN - _HELD_OUT == {"cost"} or any(_ANY_LOSS.fullmatch(word) for word in words):
        return "loss"
    if {"cross", "entropy"} <= words or any(wide in name for wide in _WIDE_LOSS):
        return "loss"
    if (words & _SCORE or {"exact", "match"} <= words) or any(wide in name for wide in _WIDE_SCORE) or {"h", "mean"} <= words:
        return "score"
    if words & _ERROR:
        return "error"
    if words & _MEMORY:
        return "memory"
    if words & _DURATION:
        return "duration"
    if words & _REWARD:
        return "reward"
    return "value" if low in ("value", "smoothed") else "other"


@lru_cache(maxsize=4096)
def works_against_another(name: str) -> bool:
    """A loss of a game (GAN, actor and critic): its level means little, and standing still may be an equilibrium."""
    return any(word in _ADVERSARIAL for word in words_of(name))
