"""Norms of gradients, weights and updates around one step, taken on samples of bounded size and read late."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from _trainsleuth_inside.windows import OptimizerRecord

SAMPLE = 2048
MOST_TENSORS = 2000
GRADIENT = 4  # where in a row its norm stands


class Snapshot:
    """The weights of an optimizer right before a step; `compare` after the step writes what moved and why."""

    def __init__(self, watch: Any, optimizer: Any) -> None:
        self._watch = watch
        torch = watch.torch
        owned = [parameter for group in optimizer.param_groups for parameter in group["params"] if plain(torch, parameter)]
        with torch.no_grad():
            self._owned = [_Samples(torch, parameters) for parameters in _alike(owned[:MOST_TENSORS])]

    def compare(self, record: OptimizerRecord) -> None:
        watch, torch, window = self._watch, self._watch.torch, record.windows
        rows: List[List[Any]] = []
        numbers: List[Any] = []
        with torch.no_grad():
            for samples in self._owned:
                rows += [_row(watch, parameter, 1) for parameter in samples.parameters]
                numbers += [_gradients(torch, samples.parameters), *samples.compare(torch)]
            held = {id(parameter) for parameter in watch.owned_parameters()}
            others = [p for p in watch.model_parameters() if id(p) not in held and plain(torch, p)]
            for parameters in _alike(others[: 2 * MOST_TENSORS - len(rows)]):
                rows += [[*_row(watch, parameter, 0), None, None, _moved(watch, parameter)] for parameter in parameters]
                numbers.append(_gradients(torch, parameters))
            read_all(watch, numbers, lambda values: self._write(record.name, window, rows, values))

    def _write(self, optimizer: str, window: int, rows: List[List[Any]], values: List[Any]) -> None:
        following = iter(rows)
        for index, samples in enumerate(self._owned):
            for scale, taken, weight, update, ones in zip(samples.scales, samples.taken, *values[4 * index + 1 : 4 * index + 4]):
                next(following).extend((weight * scale, update * scale, round(ones * ones) / taken))
        norms = (norm for some in (*values[: 4 * len(self._owned) : 4], *values[4 * len(self._owned) :]) for norm in some or ())
        for row in rows:
            row[GRADIENT] = next(norms) if row[GRADIENT] else None
        self._watch.facts.write("params", opt=optimizer, window=window, rows=rows)


class _Samples:
    """Some numbers of parameters that live on one device in one precision, copied one behind the other."""

    def __init__(self, torch: Any, parameters: List[Any]) -> None:
        self.parameters = parameters
        samples = [sample(parameter) for parameter in parameters]
        self.taken = [some.numel() for some in samples]
        self.scales = [(parameter.numel() / taken) ** 0.5 for parameter, taken in zip(parameters, self.taken)]
        self._before = torch.cat(samples)

    def compare(self, torch: Any) -> List[Any]:
        """Of each parameter the norm of what was there, of what the step added, and of a one for each number that it changed."""
        difference = torch.cat([sample(parameter) for parameter in self.parameters]) - self._before
        return [_norms(torch, list(_wide(some).split(self.taken))) for some in (self._before, difference, difference != 0)]


def _alike(parameters: List[Any]) -> List[List[Any]]:
    """Those on one device and of one precision together: they can be treated in one go."""
    found: Dict[Any, List[Any]] = {}
    for parameter in parameters:
        found.setdefault((parameter.device, parameter.dtype), []).append(parameter)
    return list(found.values())


def _row(watch: Any, parameter: Any, owned: int) -> List[Any]:
    """Its number, whether it is trainable, held by this optimizer, has a gradient, and in place of the gradient's norm the same once more."""
    has_gradient = int(parameter.grad is not None)
    return [watch.parameters.number(parameter), int(parameter.requires_grad), owned, has_gradient, has_gradient]


def _moved(watch: Any, parameter: Any) -> Optional[float]:
    moved = watch.parameters.moved(parameter)
    return None if moved is None else float(moved)


def _gradients(torch: Any, parameters: List[Any]) -> Any:
    """The norms of those gradients that are there."""
    gradients = [parameter.grad.detach() for parameter in parameters if parameter.grad is not None]
    return _norms(torch, [gradient._values() if gradient.is_sparse else gradient for gradient in gradients])


def _norms(torch: Any, tensors: List[Any]) -> Any:
    """In at least 32 bit: the norm of many small numbers may be too large for the 16 bit that each of them fits into."""
    if not tensors:
        return None
    if all(tensor.element_size() >= 4 for tensor in tensors):
        return torch.stack(torch._foreach_norm(tensors))
    widths = [torch.float32 if tensor.element_size() < 4 else None for tensor in tensors]  # no wider copy is made of any
    return torch.stack([torch.linalg.vector_norm(tensor, dtype=width) for tensor, width in zip(tensors, widths)])


def _wide(tensor: Any) -> Any:
    return tensor.float() if tensor.element_size() < 4 else tensor


def read_all(watch: Any, numbers: List[Any], then: Any) -> None:
    """Read tensors that live on one or several devices with one copy per device: of one number each, or lists of numbers."""
    torch = watch.torch
    values: List[Any] = list(numbers)
    by_device: Dict[Any, List[int]] = {}
    for index, number in enumerate(numbers):
        if isinstance(number, torch.Tensor):
            by_device.setdefault(number.device, []).append(index)
    left = len(by_device)
    if left == 0:
        then(values)
        return
    for indices in by_device.values():

        def arrived(read: List[float], where: List[int] = indices) -> None:
            nonlocal left
            at = 0
            for index in where:
                length = numbers[index].numel()
                values[index] = read[at : at + length] if numbers[index].dim() else read[at]
                at += length
            left -= 1
            if left == 0:
                then(values)

        watch.late.read(torch.cat([numbers[index].reshape(-1) for index in indices]), arrived)


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
