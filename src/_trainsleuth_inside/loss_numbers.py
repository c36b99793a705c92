"""The numbers taken at a loss call: tensors of one element each, left on their device until they are read."""

from __future__ import annotations

from typing import Any, Dict, Tuple

ROWS = 512
MOST_CLASSES_COUNTED = 64
MOST_SUMMED = 1 << 21  # numbers of two targets
About = Dict[str, Any]
Numbers = Dict[str, Any]


def class_numbers(torch: Any, given: Dict[str, Any]) -> Tuple[About, Numbers]:
    """Cross entropy and NLL: labels against classes, how sure the predictions are and whether they differ between samples."""
    inputs, target = given["input"].detach(), given["target"].detach()
    about: About = {"input_shape": list(inputs.shape), "target_shape": list(target.shape), "target_dtype": _short(target.dtype)}
    classes = inputs.shape[1] if inputs.dim() > 1 else inputs.shape[0]
    about["classes"] = int(classes)
    rows = (inputs.movedim(1, -1) if inputs.dim() > 1 else inputs.unsqueeze(0)).reshape(-1, classes)
    stride = -(-rows.shape[0] // ROWS)
    about["rows"] = int(rows.shape[0])
    rows = rows[::stride].float()
    numbers: Numbers = {}
    if rows.shape[0] == 0:
        return about, numbers
    logs = rows.log_softmax(-1)
    probabilities = logs.exp()
    numbers["entropy"] = -(probabilities * logs).sum(-1).mean()
    mean = probabilities.mean(0)
    numbers["entropy_of_mean"] = -(mean * mean.clamp_min(1e-30).log()).sum()
    numbers["spread"] = rows.std(0).mean() if rows.shape[0] > 1 else rows.std()
    numbers["size"] = rows.abs().mean()
    numbers["least"], numbers["most"] = rows.min(), rows.max()
    numbers["row_sum_off"] = (rows.sum(-1) - 1).abs().max()
    numbers["row_lse_off"] = rows.logsumexp(-1).abs().max()
    if given["input"].dim() == 2:
        numbers["column_lse_off"] = inputs.float().logsumexp(0).abs().max()
        numbers["column_sum_off"] = (inputs.float().exp().sum(0) - 1).abs().max()
    if not target.is_floating_point():
        about["target_kind"] = "index"
        labels = target.reshape(-1)[::stride]
        _label_numbers(torch, rows, labels, given.get("ignore_index", -100), classes, numbers)
    else:
        about["target_kind"] = "probabilities"
        spread = target.movedim(1, -1).reshape(-1, classes)[::stride] if target.dim() > 1 else target.reshape(1, -1)
        numbers["target_row_sum_off"] = (spread.float().sum(-1) - 1).abs().max()
        best = spread.argmax(-1)
        numbers["accuracy"] = (rows.argmax(-1) == best).float().mean()
        _histogram(torch, best, classes, numbers)
    return about, numbers


def _label_numbers(torch: Any, rows: Any, labels: Any, ignored: int, classes: int, numbers: Numbers) -> None:
    valid = labels != ignored
    count = valid.sum().clamp_min(1)
    numbers["ignored"] = 1 - valid.float().mean()
    numbers["label_least"] = labels.where(valid, torch.full_like(labels, 1 << 40)).min()
    numbers["label_most"] = labels.where(valid, torch.full_like(labels, -(1 << 40))).max()
    numbers["accuracy"] = ((rows.argmax(-1) == labels) & valid).float().sum() / count
    _histogram(torch, labels.where(valid, torch.full_like(labels, -1)), classes, numbers)


def _histogram(torch: Any, labels: Any, classes: int, numbers: Numbers) -> None:
    if classes <= MOST_CLASSES_COUNTED:
        numbers["histogram"] = (labels.unsqueeze(-1) == torch.arange(classes, device=labels.device)).sum(0).float()


def value_numbers(torch: Any, given: Dict[str, Any]) -> Tuple[About, Numbers]:
    """Losses that compare values: their shapes, sizes and spreads, on both sides."""
    inputs, target = given["input"].detach(), given["target"].detach()
    about: About = {
        "input_shape": list(inputs.shape), "target_shape": list(target.shape), "target_dtype": _short(target.dtype),
        "target_kind": "value",
    }  # fmt: skip
    numbers: Numbers = {}
    for side, tensor in (("input", inputs), ("target", target)):
        if tensor.numel() == 0:
            continue
        flat = tensor.reshape(-1)
        flat = flat[:: -(-flat.shape[0] // (8 * ROWS))].float()
        numbers[f"{side}_mean"], numbers[f"{side}_least"], numbers[f"{side}_most"] = flat.mean(), flat.min(), flat.max()
        numbers[f"{side}_spread"] = flat.std() if flat.numel() > 1 else flat.sum() * 0
        if tensor.dim() and tensor.shape[0] > 1:
            rows = tensor[:64].reshape(min(64, tensor.shape[0]), -1)[:, :ROWS].float()
            numbers[f"{side}_row_spread"] = rows.std(0).mean()
    if inputs.shape == target.shape and inputs.numel():
        a, b = inputs.reshape(-1)[: 8 * ROWS].float(), target.reshape(-1)[: 8 * ROWS].float()
        numbers["accuracy_at_half"] = ((a > 0) == (b > 0.5)).float().mean()
    if inputs.shape == target.shape and target.dim() > 2 and target.shape[1] > 1 and 0 < target[:2].numel() <= MOST_SUMMED:
        few = target[:2].float()
        numbers["target_axis_sum_off"] = (few.sum(1) - 1).abs().max()
        numbers["target_last_sum_off"] = (few.reshape(-1, target.shape[1]).sum(-1) - 1).abs().max()
    return about, numbers


def best_guess(torch: Any, name: str, given: Dict[str, Any]) -> Any:
    """What a model would answer that ignores its input: the mean of the targets, column by column."""
    if name not in (
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
    ):
        return None
    target = given["target"].detach()
    if given["input"].shape != target.shape or target.dim() == 0 or target.shape[0] < 4:
        return None
    target = target[: 8 * ROWS].float()
    mean = target.median(0, keepdim=True).values if name == "l1_loss" else target.mean(0, keepdim=True)
    if name.startswith("binary"):
        mean = mean.clamp(1e-4, 1 - 1e-4)
    if name.endswith("logits"):
        mean = torch.logit(mean)
    return mean.expand_as(given["target"]).contiguous()


def ctc_numbers(torch: Any, given: Dict[str, Any]) -> Tuple[About, Numbers]:
    """CTC: share of blanks among the best symbols, targets that cannot fit, labels that use the blank's index."""
    logs, targets, blank = given["log_probs"].detach(), given["targets"].detach(), given["blank"]
    classes = logs.shape[-1]
    about: About = {
        "input_shape": list(logs.shape), "target_shape": list(targets.shape), "classes": int(classes), "target_kind": "sequence",
    }  # fmt: skip
    best = logs.argmax(-1)
    lengths = torch.as_tensor(given["input_lengths"]).reshape(-1)
    wanted = torch.as_tensor(given["target_lengths"]).reshape(-1)
    numbers: Numbers = {
        "blank_share": (best == blank).float().mean(),
        "too_long": (wanted.to(lengths.device) > lengths).float().mean(),
        "blank_in_targets": (targets == blank).float().mean(),
        "row_lse_off": logs.float().logsumexp(-1).abs().max(),
        "target_length": wanted.float().mean(),
        "input_length": lengths.float().mean(),
    }
    if targets.dim() == 2:
        inside = torch.arange(targets.shape[1], device=targets.device) < wanted.to(targets.device).unsqueeze(-1)
        numbers["blank_in_targets"] = ((targets == blank) & inside).float().sum() / inside.sum().clamp_min(1)
    return about, numbers


def _short(dtype: Any) -> str:
    return str(dtype).replace("torch.", "")
