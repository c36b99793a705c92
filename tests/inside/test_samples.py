"""The numbers of many tensors, computed together, are those of each alone."""

from __future__ import annotations

import pytest
import torch

from _trainsleuth_inside import samples
from _trainsleuth_inside.samples import Samples


def alone(tensor: torch.Tensor) -> list[float]:
    flat = tensor[:32].flatten(1)
    flat = flat[:, :: -(-flat.shape[1] // 512)].float()
    dead = (flat == 0).all(0).float().mean()
    return [flat.abs().mean().item(), flat.std(0).mean().item(), (flat > 0).float().mean().item(), dead.item()]


def several() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [
        torch.randn(16, 8), torch.randn(64, 3, 20, 20).relu(), torch.zeros(4, 5), torch.randint(100, (16, 12)),
        torch.randn(16, 700).bfloat16(), torch.randn(2, 1) - 5, torch.rand(16, 9) > 0.5,
    ]  # fmt: skip


@pytest.mark.parametrize("most_held", [1 << 20, 1000])
def test_numbers_of_all_are_those_of_each(most_held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST_HELD", most_held)
    tensors = several()
    together = Samples(torch)
    numbers = [together.take(tensor) for tensor in tensors]
    for tensor in tensors:
        if tensor.is_floating_point():
            tensor.zero_()  # what is overwritten afterwards was copied before
    assert numbers == list(range(len(tensors)))
    for found, tensor in zip(together.numbers(), several()):
        assert found.tolist() == pytest.approx(alone(tensor), rel=1e-4, abs=1e-6)


def test_a_tensor_without_rows_to_compare_is_left_out() -> None:
    together = Samples(torch)
    assert [together.take(torch.randn(*shape)) for shape in ((5,), (1, 5), (4, 0))] == [None, None, None]
    assert together.numbers() == []
