"""Shows trials while they run: one line each, with a spinner on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainsleuth.trials.settle import Event


def follow(console: Any, events: Iterable[Event]) -> Iterator[Event]:
    """Pass events on, and print what a person wants to know of them."""
    from trainsleuth.trials.settle import Begun, Done, Note, Unsettled

    status = console.status("") if console.is_terminal else None
    shown: set[str] = set()
    try:
        for event in events:
            if isinstance(event, Begun) and status is not None:
                status.update(f"trial: {event.label} (at most {event.seconds:.0f} s)")
                status.start()
            elif isinstance(event, Done):
                if status is not None:
                    status.stop()
                if event.known.id not in shown:
                    console.print(_line(event), soft_wrap=True, markup=False)
                shown.add(event.known.id)
            elif isinstance(event, Note):
                console.print(event.text, soft_wrap=True, markup=False)
            elif isinstance(event, Unsettled):
                console.print(f"{event.finding}  {event.rule}: {event.why}", soft_wrap=True, markup=False)
            yield event
    finally:
        if status is not None:
            status.stop()


KINDS = {"healthy": "goes on", "stalled": "stays flat"}  # of one trial; what it says of the cause is another matter


def _line(event: Any) -> str:
    from trainsleuth.rules.wording import loss

    outcome = event.known.outcome
    learning = outcome.learning
    words = f"loss {loss(learning.first)} → {loss(learning.last)} in {outcome.windows} steps" if learning is not None else outcome.why
    when = "known from before" if event.from_before else f"{outcome.seconds:.0f} s"
    return f"{event.known.id:<4} {event.known.label:<20} {KINDS.get(outcome.kind, outcome.kind):<14} {words}   ({when})"
