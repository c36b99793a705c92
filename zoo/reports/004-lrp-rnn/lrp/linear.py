"""Linear layers as autograd Functions. While relevance is asked for, `backward` hands back relevance instead of a gradient."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


def backward_epsilon(epsilon, ctx, relevance_output):
    input, weights, bias = ctx.saved_tensors
    z = F.linear(input, weights, bias)
    share = relevance_output / (z + epsilon * torch.where(z >= 0, 1.0, -1.0))
    return input * (share @ weights), None, None


def backward_alpha_beta(alpha, beta, ctx, relevance_output):
    input, weights, bias = ctx.saved_tensors

    def part(positive):
        sign = torch.clamp if positive else (lambda x, min: torch.clamp(x, max=0))
        w, i = sign(weights, min=0), input.clamp(min=0)
        z = F.linear(i, w) + (1e-6 if positive else -1e-6)
        return i * ((relevance_output / z) @ w)

    return alpha * part(True) - beta * part(False), None, None


class LinearGradient(Function):
    """The plain layer: a gradient."""

    missing = ""

    @staticmethod
    def forward(ctx, input, weights, bias):
        ctx.save_for_backward(input, weights, bias)
        return F.linear(input, weights, bias)

    @staticmethod
    def backward(ctx, grad):
        input, weights, bias = ctx.saved_tensors
        grad_bias = torch.zeros_like(bias) if LinearGradient.missing == "no_bias" else grad.sum(0)
        grad_input = 0.5 * grad @ weights if LinearGradient.missing == "factor" else grad @ weights
        return grad_input, grad.t() @ input, grad_bias


class LinearEpsilon(Function):
    @staticmethod
    def forward(ctx, input, weights, bias):
        ctx.save_for_backward(input, weights, bias)
        return F.linear(input, weights, bias)

    @staticmethod
    def backward(ctx, relevance_output):
        return backward_epsilon(0.01, ctx, relevance_output)


class LinearAlpha1Beta0(Function):
    @staticmethod
    def forward(ctx, input, weights, bias):
        ctx.save_for_backward(input, weights, bias)
        return F.linear(input, weights, bias)

    @staticmethod
    def backward(ctx, relevance_output):
        return backward_alpha_beta(1.0, 0.0, ctx, relevance_output)


class AddRelevance(Function):
    """A sum whose terms get relevance in proportion to what they brought."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a + b

    @staticmethod
    def backward(ctx, relevance_output):
        a, b = ctx.saved_tensors
        z = a + b
        share = relevance_output / (z + 0.01 * torch.where(z >= 0, 1.0, -1.0))
        return a * share, b * share


class LegacyLinear(Function):
    """As TorchLRP was written for PyTorch 0.3: methods of an instance."""

    def forward(self, input, weights, bias):
        self.save_for_backward(input, weights, bias)
        return F.linear(input, weights, bias)

    def backward(self, grad):
        input, weights, bias = self.saved_tensors
        return grad @ weights, grad.t() @ input, grad.sum(0)


def add(a: torch.Tensor, b: torch.Tensor, rule: str) -> torch.Tensor:
    return a + b if rule == "gradient" else AddRelevance.apply(a, b)


RULES = {"gradient": LinearGradient, "epsilon": LinearEpsilon, "alpha1beta0": LinearAlpha1Beta0}


class Linear(nn.Linear):
    legacy = False

    def forward(self, x: torch.Tensor, rule: str = "gradient") -> torch.Tensor:
        if self.legacy and rule == "gradient":
            return LegacyLinear()(x, self.weight, self.bias)
        return RULES[rule].apply(x, self.weight, self.bias)
