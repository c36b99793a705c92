"""Knob `reparameterised`: at the named lines distributions draw in a way that gradients pass.

Changes        `sample()` of a distribution that can reparameterise is `rsample()` there
Mechanism      samples that are drawn without gradients
Not applicable when no named line draws from such a distribution
"""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Sequence

from _trainsleuth_inside.knobs.acting import called_from, lines, says


def turn(watch: Any, at: Sequence[Any] = ()) -> None:
    wanted, acted = lines(at), says(watch, "reparameterised")

    def drawing(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def sample(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.has_rsample or not watch.torch.is_grad_enabled() or called_from(wanted) is None:
                return original(self, *args, **kwargs)
            acted(distribution=type(self).__name__)
            return self.rsample(*args, **kwargs)

        return sample

    waiting: List[Any] = [watch.torch.distributions.Distribution]
    while waiting:
        kind = waiting.pop()
        waiting.extend(kind.__subclasses__())
        if "sample" in vars(kind):
            kind.sample = drawing(kind.sample)
