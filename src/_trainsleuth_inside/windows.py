"""What happens to gradients between two steps of one optimizer: delivered by which backward, consumed, or thrown away.

The judgement needs no knowledge of who calls what in which order. One small parameter of the optimizer, the sentinel, is
looked at before and after each backward and before each step: a gradient that was there and is gone without a step in
between was discarded, one that is still there after a step was never cleared.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List, Optional

from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.leftovers import Leftovers
from _trainsleuth_inside.places import Place


class Backward:
    """One call of backward, as far as one must know whether its gradients were ever used."""

    __slots__ = ("at", "fed_inputs", "scaler", "used")

    def __init__(self, at: Optional[Place]) -> None:
        self.at = at
        self.used = False
        self.fed_inputs = False
        self.scaler: Any = None  # a reference to the scaler that multiplied the loss


class OptimizerRecord:
    """One optimizer: its identity, its windows, and the fate of the gradients in them."""

    def __init__(self, name: str, optimizer: Any, made_at: Optional[Place], number: Callable[[Any], int]) -> None:
        self.name = name
        self.kind = type(optimizer).__name__
        self.made_at = made_at
        self.optimizer = weakref.ref(optimizer)
        self.repeated = False  # one of many that one line makes (meta-learning, clients): it begins nothing new
        self.windows = 0
        self.skipped = 0
        self.sampling = True
        self.deep = True
        self.in_step = False
        self.attend_at = 0  # while resting: the window after which more is to be done than counting
        self.upkeep_at = 0  # and the one after which there is more than backward to attend to
        self.cost = 0.0  # seconds that the snapshot before the step took
        self.step_at: Optional[Place] = None
        self.cleared_at: Optional[Place] = None
        self.suspicious = False  # gradients were dropped before: keep copies that tell surgery from a mistake
        self._sentinel: Any = None
        self._searches = 0
        self._grad: Any = None
        self._grad_version = -1
        self._grad_copy: Any = None
        self._weight_copy: Any = None
        self._residue = False  # the last step's gradient is still there
        self._partly = False  # nobody looked when the present window began
        self._leftovers = Leftovers(number)
        self._latest: Optional[Backward] = None  # while no gradient has ever come to us
        self.pending: List[Backward] = []
        self._dropped: List[Backward] = []
        self._dropped_before: List[Backward] = []
        self.forget()

    def forget(self) -> None:
        """Begin a new written interval."""
        self._accounted = self.windows  # the row's windows are those after this one
        self._row_watched = 0
        self._row_backwards = 0
        self._row_delivered = 0
        self._row_discarded = 0
        self._row_stale = 0
        self._row_skipped = 0
        self._row_surgery = 0
        self._rates: Optional[List[List[float]]] = None

    @property
    def steps(self) -> int:
        return self.windows - self.skipped

    # -- what the probes report ------------------------------------------------------------------------------------

    def before_backward(self) -> None:
        self._notice_clearing(None)
        grad = self._sentinel_grad()
        left_by_step = self.windows and not self.pending and not self._partly
        if left_by_step and grad is not None and grad is self._grad and grad._version == self._grad_version:
            self._residue = self._residue or _has_numbers(grad)
        self._leftovers.before_backward()

    def after_backward(self, backward: Backward) -> None:
        """Did this backward deliver a gradient to us?"""
        if self._sentinel is None:
            self._latest = backward
            self._choose_sentinel()
        grad = self._sentinel_grad()
        self._row_backwards += 1
        if grad is None or (grad is self._grad and grad._version == self._grad_version):
            return
        self.pending.append(backward)
        if not self._partly:
            self._row_delivered += 1
        self._know(grad)
        if self.suspicious:
            self._grad_copy = grad.detach().clone()
            self._weight_copy = self._sentinel().detach().clone()

    def before_clearing(self, at: Optional[Place]) -> None:
        """zero_grad was called, on the optimizer or on a module."""
        self._drop_pending(at)
        self._residue = False
        self._grad, self._grad_version = None, -1
        self._leftovers.cleared()

    def notice_clearing(self, at: Optional[Place]) -> None:
        self._notice_clearing(at)
        self._leftovers.prune()

    def before_step(self) -> None:
        self.in_step = True
        if self._sentinel is None and self._latest is not None:
            self._begins_late(self._latest)
        grad = self._sentinel_grad()
        if grad is not self._grad:
            self._residue = False  # the program put another gradient in its place, as with copies of the weights in 32 bit
        unseen = self._partly and not self.pending  # what is there may come from a backward that nobody saw
        if grad is not None and not unseen and (self._was_replaced(grad) if self.pending else grad is not self._grad):
            self._row_surgery += 1
            for backward in (*self._dropped, *self._dropped_before, *self.pending):
                backward.used = True

    def after_step(self) -> None:
        self.in_step = False
        self._close()
        if self._residue:
            self._row_stale += 1
        grad = self._sentinel_grad()
        if grad is not None:
            self._know(grad)
        self._leftovers.end()
        optimizer = self.optimizer()
        if self.sampling and optimizer is not None:
            self._leftovers.begin(optimizer)

    def sample_gradient(self) -> Any:
        """The gradient of one small parameter, which stands for all of them."""
        return self._sentinel_grad()

    def step_skipped(self) -> None:
        """A scaler found Inf and skipped the step: the gradients were rejected, not lost by mistake."""
        self.skipped += 1
        self._row_skipped += 1
        self._close()

    def wake(self) -> None:
        """Begin to look at gradients again: what was known of them is out of date, and what is there now no backward to come has made."""
        self.pending, self._dropped, self._dropped_before = [], [], []
        self._grad, self._grad_version, self._residue = None, -1, False
        self._partly = True
        self._leftovers.drop()
        grad = self._sentinel_grad()
        if grad is not None:
            self._know(grad)

    # -- inner workings --------------------------------------------------------------------------------------------

    def _close(self) -> None:
        self.windows += 1
        self._row_watched += not self._partly
        self._partly = False
        for backward in self.pending:
            backward.used = True
        self.pending = []
        if self._dropped_before or self._dropped:
            self._row_discarded += sum(1 for backward in self._dropped_before if not backward.used and not backward.fed_inputs)
            self._dropped_before, self._dropped = self._dropped, []
        self.note_rates()

    def _drop_pending(self, at: Optional[Place]) -> None:
        if not self.pending:
            return
        self.cleared_at = at or self.cleared_at
        if self.suspicious:
            if self._weights_were_moved_by_hand():
                for backward in self.pending:
                    backward.used = True
            self._dropped.extend(self.pending)
        self.suspicious = True
        self.pending = []

    def _notice_clearing(self, at: Optional[Place]) -> None:
        if self._sentinel is None or self._grad is None:
            return
        grad = self._sentinel_grad()
        if grad is self._grad and (grad._version == self._grad_version or _has_numbers(grad)):
            return
        self._drop_pending(at)
        self._residue = False
        self._grad, self._grad_version = None, -1

    def _was_replaced(self, grad: Any) -> bool:
        """Gradient surgery: what the step will use is not what the last backward left, up to a factor (clipping, unscaling)."""
        if grad is not self._grad:
            return True
        if self._grad_copy is None or grad._version == self._grad_version or grad.device.type != "cpu":
            return False
        before, now = self._grad_copy.double().flatten(), grad.detach().double().flatten()
        lengths = float(before.norm() * now.norm())
        return lengths > 0 and abs(float(before @ now)) < 0.999 * lengths

    def _weights_were_moved_by_hand(self) -> bool:
        weight = self._sentinel() if self._sentinel is not None else None
        if weight is None or self._weight_copy is None or weight.device.type != "cpu":
            return False
        return not bool((weight.detach() == self._weight_copy).all())

    def _choose_sentinel(self) -> None:
        """The smallest parameter with a gradient: holding on to it costs next to nothing."""
        self._searches += 1
        optimizer = self.optimizer()
        if optimizer is None or (self._searches > 8 and self._searches % 64):
            return
        best = None
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is None or grad.is_sparse or not readable(grad):
                    continue
                if best is None or parameter.numel() < best.numel():
                    best = parameter
        if best is not None:
            self._sentinel = weakref.ref(best)

    def _begins_late(self, latest: Backward) -> None:
        """The first step after many backwards that had nothing for us: the search had become rare, and this step uses the latest of them."""
        self._searches = 0
        self._choose_sentinel()
        self._latest = None
        if self._sentinel is not None:
            latest.used = True
            self._partly = True

    def _sentinel_grad(self) -> Any:
        weight = self._sentinel() if self._sentinel is not None else None
        return None if weight is None else weight.grad

    def _know(self, grad: Any) -> None:
        self._grad, self._grad_version = grad, grad._version

    def note_rates(self) -> None:
        optimizer = self.optimizer()
        if optimizer is None:
            return
        rates = [_number(group.get("lr")) for group in optimizer.param_groups[:8]]
        if self._rates is None or len(self._rates) != len(rates):
            self._rates = [[rate, rate, rate] for rate in rates]
            return
        for known, rate in zip(self._rates, rates):
            if rate == known[2]:
                continue
            if rate < known[0]:
                known[0] = rate
            if rate > known[1]:
                known[1] = rate
            known[2] = rate

    def take(self) -> Optional[Dict[str, Any]]:
        """The row of the interval that ends now, or None if nothing happened in it."""
        windows = self.windows - self._accounted
        if windows == 0 and self._row_backwards == 0:
            return None
        left_looks, left = self._leftovers.take()
        row = {
            "opt": self.name,
            "to": self.windows,
            "n": windows,
            "watched": self._row_watched,
            "backwards": self._row_backwards,
            "delivered": self._row_delivered,
            "discarded": self._row_discarded,
            "stale": self._row_stale,
            "skipped": self._row_skipped,
            "surgery": self._row_surgery,
            "rates": self._rates,
            "step_at": self.step_at,
            "cleared_at": self.cleared_at,
            "left_looks": left_looks,
            "left": left,
        }
        self.forget()
        return row


def _number(rate: Any) -> float:
    """A learning rate; one that is kept in a tensor on a device is not read, that would make the program wait."""
    if isinstance(rate, (int, float)):
        return float(rate)
    if getattr(getattr(rate, "device", None), "type", "") == "cpu":
        return float(rate)
    return float("nan")


def _has_numbers(grad: Any) -> bool:
    """Whether a small gradient holds anything but zeros; on a device we do not ask, and assume it does not."""
    return grad is not None and grad.device.type == "cpu" and bool(grad.detach().any())
