"""What a chart holds of each thing that a program has: parameters, optimizers, models, losses, loaders, schedulers, forks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trainsleuth.case.curve import Curve
from trainsleuth.case.reading import Fact

MOST_SAMPLES = 400
FIRST_KEPT = 8


class Place(NamedTuple):
    """A line of the program."""

    file: str
    line: int
    function: str = ""


def place(value: Any) -> Place | None:
    if isinstance(value, list) and len(value) >= 2 and isinstance(value[0], str) and isinstance(value[1], int):
        return Place(value[0], value[1], str(value[2]) if len(value) > 2 else "")
    return None


def keep(samples: list[Any], sample: Any, most: int = MOST_SAMPLES) -> None:
    """Append to a bounded list: the first and the latest stay, the middle is thinned."""
    samples.append(sample)
    if len(samples) > most:
        half = samples[FIRST_KEPT : most // 2 : 2]
        samples[FIRST_KEPT : most // 2] = half


@dataclass(slots=True)
class Parameter:
    number: int
    name: str = "?"
    model: str | None = None
    names: dict[str, str] = field(default_factory=dict)  # in each model that was called; a tower may be called on its own too
    shape: tuple[int, ...] = ()
    dtype: str = ""
    trainable: bool = True
    frozen_at: Place | None = None
    made_at: Place | None = None
    made: float = 0.0
    put_in: tuple[Place | None, float] = (None, 0.0)  # the line that put it into its module once an optimizer was there, and when
    loaded: bool = False
    owners: set[str] = field(default_factory=set)
    with_gradient: int = 0
    zero_gradient: int = 0
    without_gradient: int = 0
    moved: int = 0
    gradient: float | None = None
    weight: float | None = None
    update: float | None = None
    changed_share: float | None = None
    first_gradients: list[float] = field(default_factory=list)
    left: int = 0  # looks in which a step used the gradient of the step before, too
    ever_trainable: bool = False

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def looks(self) -> int:
        """Windows in which it was looked at."""
        return self.with_gradient + self.zero_gradient + self.without_gradient


@dataclass
class HalfParameter:
    """A parameter of 16 bit that an optimizer steps, in the latest look."""

    number: int
    optimizer: str
    group: int
    dtype: str
    state: str | None  # the type of its second moment
    window: int
    looks: int
    changed: float  # share of its numbers that differ from the first look
    median: float | None  # of the sizes of its numbers
    squares_lost: float  # most that was ever seen: share of numbers with a gradient whose second moment is zero
    not_finite: float


@dataclass
class Optimizer:
    id: str
    kind: str
    at: Place | None
    made: float
    groups: list[dict[str, Any]]
    parameters: list[int]
    after_windows: int = 0
    after_backwards: int = 0
    windows: int = 0
    watched: int = 0  # windows in which the fate of gradients was looked at
    backwards: int = 0
    delivered: int = 0
    discarded: int = 0
    stale: int = 0
    left_looks: int = 0  # windows in which each single parameter was looked at for the gradient of the last step
    skipped: int = 0
    surgery: int = 0
    recent: list[dict[str, int]] = field(default_factory=list)
    rates: Curve = field(default_factory=Curve)  # of the group whose rate is largest
    rates_by_group: list[list[float]] = field(default_factory=list)  # least, most, last of each group
    step_at: Place | None = None
    cleared_at: Place | None = None
    asked_at: Place | None = None  # the line that called the function in which it was made
    loaded: list[Fact] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return self.windows - self.skipped

    @property
    def micro_batches(self) -> float:
        return self.delivered / self.watched if self.watched else 0.0


@dataclass
class Model:
    id: str
    kind: str
    at: Place | None
    parameters: list[int]
    modules: dict[str, str]
    plain: list[list[Any]]
    made: dict[str, Place]  # the line that built a module, by its path
    holder: str = ""  # the kind of a module that hides it in a plain list and is not called itself
    modes: dict[tuple[bool, bool], Fact] = field(default_factory=dict)
    first_modes: dict[tuple[bool, bool], Fact] = field(default_factory=dict)
    windows_without_grad: int = 0  # windows in which it was called without gradients
    recent: list[tuple[bool, int]] = field(default_factory=list)  # train mode, windows trained in it; the latest rows
    calls: dict[tuple[bool, bool, str | None], int] = field(default_factory=dict)
    places: dict[tuple[bool, bool, str | None], Place | None] = field(default_factory=dict)


@dataclass
class LossCalls:
    """What was seen at one call site of a loss function."""

    function: str
    at: Place | None
    samples: list[Fact] = field(default_factory=list)
    seen: int = 0
    other_targets: set[float] = field(default_factory=set)  # least and most, of calls that were not looked at closely

    @property
    def last(self) -> Fact:
        return self.samples[-1]

    def numbers(self, key: str) -> list[float]:
        found = (sample["numbers"].get(key) for sample in self.samples)
        return [number for number in found if isinstance(number, (int, float))]


@dataclass
class Loader:
    id: str
    at: Place | None
    about: Fact
    passes: list[Fact] = field(default_factory=list)
    compared: list[list[int]] = field(default_factory=list)  # of the first batches of a pass, to which earlier one each is equal


@dataclass
class Scheduler:
    id: str
    kind: str
    at: Place | None
    optimizer: str | None
    about: Fact
    steps: list[Fact] = field(default_factory=list)
    loaded: bool = False


@dataclass
class Fork:
    """A place that forks, and the threads that did not come along."""

    at: Place | None
    python_threads: list[list[Any]]
    native_threads: int
    libraries: list[str]
