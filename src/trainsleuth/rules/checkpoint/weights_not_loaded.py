"""Weights are loaded, and the module knows hardly any of their names.

What it detects
    `load_state_dict(…, strict=False)` was given tensors none of which has a name that the module knows, or most of which would fit under
    another prefix (`module.`, `model.`, `encoder.`).
Why it matters
    With `strict=False` nothing is raised. The module keeps its random start, and whoever freezes it then, or trains it with a tiny rate, believes
    that it is pretrained.
How it is confirmed
    By the names themselves. A trial loads the tensors under the module's names (knob `names-matched`).
How to cure it
    Rename the keys while loading, or load into the module that the file was saved from; look at what `load_state_dict` returns.
When it is wrong
    A file of adapters or of a head has names that the module knows; nothing is said of such a file, however small a part it is.
"""

from typing import Any

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Place, place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import count

PAST = 100  # steps behind the loading that a trial should see


@cause_rule(
    "checkpoint/weights-not-loaded", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("names-matched",),
    masks=("stall/params-frozen", "stall/inputs-and-targets-misaligned"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    fact = next((fact for fact in chart.weights_loaded if _lost(fact.get("names"))), None)
    if fact is None:
        return None
    names, kind, now = fact["names"], fact["kind"], standing(chart)
    none = names["matched"] == 0
    prefix = f"take {names['removes']!r} away" if names["removes"] else f"put {names['adds']!r} before them"
    loss = _trained_behind(chart, fact["windows"])
    at = place(fact["at"])
    return Seen(
        title=f"none of the {count(names['given'], 'tensor')} that were loaded has a name that {kind} knows: it stays as it was" if none
        else f"{names['fits']} of the {count(names['given'], 'tensor')} that were loaded have other names in {kind}, and were left out",
        where=[
            Spot(at, f"loads nothing: {prefix}" if names["fits"] else "loads nothing" if none else f"loads only in part: {prefix}") if at else None,
            Spot(loss, "what is trained with it") if loss else None,
        ],
        evidence=[
            f"in the file: {', '.join(names['unexpected'])}; in the module: {', '.join(names['missing'])}",
            f"{names['matched']} of {names['wanted']} tensors of the module were loaded"
            + (f"; with another prefix {names['fits']} more would fit, by name and shape" if names["fits"] else ""),
        ],
        severity="critical" if not isinstance(now, str) and now.stuck else "warning",
        step=min(chart.windows, fact["windows"] + PAST) or None,
        statement="strict=False hides that the names do not fit",
        advice=[f"Rename while loading ({prefix})." if names["fits"] else "Load into the module that the file was saved from.",
                "Print what load_state_dict returns: its missing_keys stay at their random start."],
    )  # fmt: skip


def _lost(names: Any) -> bool:
    if not isinstance(names, dict) or not names["missing"] or not names["unexpected"]:
        return False
    return bool(names["matched"] == 0 or 2 * names["fits"] >= names["wanted"] - names["matched"])


def _trained_behind(chart: ProcessChart, windows: int) -> Place | None:
    """The loss that is trained after the loading, if it is not the only one."""
    later = [(curve.count, at) for at, curve in chart.losses.items() if curve.began >= windows]
    return max(later)[1] if later and len(chart.losses) > 1 else None
