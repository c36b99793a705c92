"""Writes into a report what two variants of a program show: the table, and a sentence on the claim."""

from __future__ import annotations

from typing import Any

from trainsleuth.trials.against import BY_HEART, Against, Variant


def add_against(report: dict[str, Any], known: Against) -> None:
    """Put the comparison into the report, in place of an earlier one with the same variant."""
    earlier = [row for row in report.get("against", []) if row["variants"][1]["name"] != known.other.name]
    report["against"] = [*earlier, {
        "metric": known.measure.name, "higher_is_better": known.measure.higher, "variants": [_variant(known.base), _variant(known.other)],
        "worse_by": None if known.worse is None else list(known.worse), "claim": known.claim, "said": verdict(known),
    }]  # fmt: skip


def _variant(variant: Variant) -> dict[str, Any]:
    learning = variant.one_batch.outcome.learning
    return {
        "name": variant.name, "ends": list(variant.ends), "parameters": variant.weights, "seconds_a_step": variant.pace,
        "one_batch": None if learning is None else {"first": learning.first, "last": learning.last}, "by_heart": variant.by_heart,
        "trials": [known.id for known in (*variant.trials, variant.one_batch)],
    }  # fmt: skip


def table(known: Against) -> list[str]:
    """Both variants side by side, then the verdict."""
    names = (known.base.name, known.other.name)
    width = max(24, *map(len, names)) + 2
    steps = min(one.outcome.windows for variant in (known.base, known.other) for one in variant.trials)
    rows = [
        ("", *names),
        (f"{known.measure.name} after {steps} steps", *(_ends(variant) for variant in (known.base, known.other))),
        ("one batch, again and again", *(_one_batch(variant) for variant in (known.base, known.other))),
        ("parameters", *(f"{variant.weights:,}" for variant in (known.base, known.other))),
        ("time per step", *("" if variant.pace is None else f"{1000 * variant.pace:.0f} ms" for variant in (known.base, known.other))),
    ]
    left = max(len(row[0]) for row in rows) + 2
    wide = max(width, *(len(row[1]) + 2 for row in rows))
    return [f"{row[0]:<{left}}{row[1]:<{wide}}{row[2]}".rstrip() for row in rows] + ["", verdict(known)]


def _ends(variant: Variant) -> str:
    return " ".join("broke" if end is None else f"{end:.4g}" for end in variant.ends)


def _one_batch(variant: Variant) -> str:
    outcome = variant.one_batch.outcome
    if outcome.learning is None:
        return outcome.why or outcome.kind
    return f"loss {outcome.learning.first:.4g} → {outcome.learning.last:.4g}"


def verdict(known: Against) -> str:
    """One sentence on capacity, one on the difference at equal budget."""
    base, other = known.base, known.other
    if known.claim == "capacity suffices":
        said = f"capacity suffices: {other.name} learns one batch by heart"
        said += ", and so does the program as it is" if base.by_heart else ", which the program as it is does not"
    elif known.claim == "lacks capacity":
        said = f"the claim holds: {other.name} cannot learn one batch by heart, and the program as it is can"
    elif base.by_heart is False and other.by_heart is False:
        said = f"inconclusive on capacity: neither learns one batch by heart within these steps (a loss below {BY_HEART:.0%} of its start)"
    else:
        why = next((v.one_batch.outcome.why for v in (base, other) if v.by_heart is None and v.one_batch.outcome.why), "")
        said = f"inconclusive on capacity: one batch could not be repeated{f' ({why})' if why else ''}"
    return f"{said.replace('%', ' %')}. {_difference(known)}"


def _difference(known: Against) -> str:
    name, seeds = known.other.name, len(known.other.ends)
    if known.worse is None:
        broke = sum(end is None for end in known.other.ends)
        return f"Of {seeds} runs of {name} {broke} broke, so the ends cannot be compared."
    limits = f"95 % interval {known.worse.low:.3g} to {known.worse.high:.3g}, {seeds} seeds"
    if not known.differs:
        return f"At equal budget no difference in {known.measure.name} is shown ({known.worse.mean:.3g}; {limits})."
    way = "worse" if known.worse.mean > 0 else "better"
    return f"At equal budget {name} ends {way} in {known.measure.name} by {abs(known.worse.mean):.3g} ({limits}; error rate 5 %)."
