"""What the knobs share: they say once what they did, and know which of the user's lines they are about."""

from __future__ import annotations

import sys
from typing import Any, Callable, List, Optional, Sequence, Tuple

from _trainsleuth_inside import places

Line = Tuple[str, int]


def lines(at: Sequence[Sequence[Any]]) -> List[Line]:
    return [(str(entry[0]), int(entry[1])) for entry in at]


def called_from(wanted: List[Line], skip: int = 2) -> Optional[places.Place]:
    """The user's line that led here, if it is one of the wanted ones, or if none is named."""
    place = places.of_frame(sys._getframe(skip))
    if place is None or (wanted and (place[0], place[1]) not in wanted):
        return None
    return place


def says(watch: Any, knob: str) -> Callable[..., None]:
    """A function that records, once, that the knob had something to change; a trial without this fact is not applicable."""

    def acted(**what: Any) -> None:
        watch.facts.once(("knob", knob), "knob_acted", knob=knob, windows=watch.windows, **what)

    return acted
