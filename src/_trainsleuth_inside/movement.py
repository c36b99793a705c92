"""Norms of gradients, weights and updates around one step, taken on samples of bounded size and read late."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from _trainsleuth_inside.windows import OptimizerRecord

SAMPLE = 2048
MOST_TENSORS = 2000


class Snapshot:
    """The weights of an optimizer right before a step; `compare` after the step writes what moved and why."""

    def __init__(self, watch: Any, optimizer: Any) -> None:
        self._watch = watch
        self._owned: List[Tuple[Any, Any]] = []
        torch = watch.torch
        with torch.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if len(self._owned) < MOST_TENSORS and plain(torch, parameter):
                        self._owned.append((parameter, sample(parameter).clone()))

    def compare(self, record: OptimizerRecord) -> None:
        watch, torch = self._watch, self._watch.torch
        rows: List[List[Any]] = []
        numbers: List[Any] = []
        with torch.no_grad():
            for parameter, before in self._owned:
                now = sample(parameter)
                difference = now - before
                scale = (parameter.numel() / max(1, now.numel())) ** 0.5
                numbers += [_gradient(torch, parameter.grad), _norm(torch, before) * scale, _norm(torch, difference) * scale,
                            (difference != 0).sum().float() / max(1, now.numel())]  # fmt: skip
                rows.append([watch.parameters.number(parameter), int(parameter.requires_grad), 1,
                             0 if parameter.grad is None else 1])  # fmt: skip
            held = {id(parameter) for parameter in watch.owned_parameters()}
            for parameter in watch.model_parameters():
                if id(parameter) in held or len(rows) >= 2 * MOST_TENSORS or not plain(torch, parameter):
                    continue
                moved = watch.parameters.moved(parameter)
                numbers += [_gradient(torch, parameter.grad), None, None, None if moved is None else float(moved)]
                rows.append([watch.parameters.number(parameter), int(parameter.requires_grad), 0,
                             0 if parameter.grad is None else 1])  # fmt: skip
            window = record.windows
            read_all(watch, numbers, lambda values: _write(watch, record.name, window, rows, values))


def _write(watch: Any, optimizer: str, window: int, rows: List[List[Any]], values: List[Any]) -> None:
    for index, row in enumerate(rows):
        row.extend(values[4 * index : 4 * index + 4])
    watch.facts.write("params", opt=optimizer, window=window, rows=rows)


def read_all(watch: Any, numbers: List[Any], then: Any) -> None:
    """Read scalars that live on one or several devices with one copy per device."""
    values: List[Any] = [None if hasattr(n, "device") else n for n in numbers]
    by_device: dict[str, List[int]] = {}
    for index, number in enumerate(numbers):
        if hasattr(number, "device"):
            by_device.setdefault(str(number.device), []).append(index)
    left = len(by_device)
    if left == 0:
        then(values)
        return
    state = {"left": left}
    for indices in by_device.values():
        stacked = watch.torch.stack([numbers[index].reshape(()) for index in indices])

        def arrived(read: List[float], where: List[int] = indices) -> None:
            for index, value in zip(where, read):
                values[index] = value
            state["left"] -= 1
            if state["left"] == 0:
                then(values)

        watch.late.read(stacked, arrived)


def _gradient(torch: Any, grad: Any) -> Optional[Any]:
    if grad is None:
        return None
    return _norm(torch, grad._values() if grad.is_sparse else grad)


def _norm(torch: Any, numbers: Any) -> Any:
    """In at least 32 bit: the norm of many small numbers may be too large for the 16 bit that each of them fits into."""
    narrow = numbers.is_floating_point() and numbers.element_size() < 4
    return torch.linalg.vector_norm(numbers.detach(), dtype=torch.float32 if narrow else None)


def sample(parameter: Any) -> Any:
    weights = parameter.detach()
    flat = weights.as_strided((weights.numel(),), (1,)) if _dense(weights) else weights.flatten()
    stride = -(-flat.numel() // SAMPLE)
    return flat[:: max(1, stride)]


def _dense(weights: Any) -> bool:
    """Whether its numbers fill one stretch of memory in some order, as a channels_last weight does."""
    expected = 1
    for stride, size in sorted(zip(weights.stride(), weights.shape)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def plain(torch: Any, parameter: Any) -> bool:
    """Tensors whose numbers can be read: no meta, lazy, quantised or sharded ones."""
    return (
        type(parameter) in (torch.Tensor, torch.nn.Parameter)
        and parameter.layout == torch.strided
        and parameter.is_floating_point()
        and parameter.device.type != "meta"
        and parameter.numel() > 0
    )
