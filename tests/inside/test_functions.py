"""The check of the program's own autograd Functions: wrong ones are found, right ones and those that differ on purpose are left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from _trainsleuth_inside.facts import FactWriter
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.instruments.functions import FunctionExamination


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad * (s + x * s * (1 - s))


class SwishWithAWrongSign(Swish):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad * (s - x * s * (1 - s))


class TwiceTheGradient(Swish):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 2 * Swish.backward(ctx, grad)


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return -grad


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return (x * 4).round() / 4

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class ClampedButPassedThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clamp(-0.5, 0.5)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class GradientLimited(Swish):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return Swish.backward(ctx, grad.clamp(-1, 1))


def verdict(kind: Any, tmp_path: Any) -> dict[str, Any]:
    probe = Probe("test", FactWriter(str(tmp_path), dict))
    examination = FunctionExamination(SimpleNamespace(torch=torch, when_backward_ended=[], backwards=0), probe)
    examination._apply = torch.autograd.Function.__dict__["apply"].__func__
    found = examination._check(kind, [torch.randn(6, 5, generator=torch.Generator().manual_seed(3))])
    assert found is not None
    return found


@pytest.mark.parametrize("kind", [SwishWithAWrongSign, TwiceTheGradient])
def test_a_wrong_backward_is_found(kind: Any, tmp_path: Any) -> None:
    assert verdict(kind, tmp_path)["verdict"] == "wrong"


def test_a_constant_factor_is_named(tmp_path: Any) -> None:
    assert verdict(TwiceTheGradient, tmp_path)["factor"] == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize("kind", [Swish, Reversal, Rounded, ClampedButPassedThrough, GradientLimited])
def test_right_ones_and_tricks_are_left_alone(kind: Any, tmp_path: Any) -> None:
    assert verdict(kind, tmp_path)["verdict"] in ("right", "on purpose")
