"""Writes into a report what 16 bit loses, which modules lose it, and what is still lost when they are kept in 32 bit."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

from trainsleuth.report.json_report import shown
from trainsleuth.report.proof import trial_row
from trainsleuth.rules.locate import code_at
from trainsleuth.trials.chance import Interval
from trainsleuth.trials.halves import ModuleError, words
from trainsleuth.trials.precision import CLOSED, Precision, Side

RULE = "precision/accuracy-loss"
MOST_SHOWN = 4


def add_precision(report: dict[str, Any], known: Precision, cwd: Path) -> str:
    """Put what was found into the report, in place of an earlier search; the id of its finding, or nothing where no loss was found."""
    earlier = [row["id"] for row in report["findings"] if row["rule"] == RULE]
    report["trials"] = [row for row in report["trials"] if row.get("finding") not in earlier]
    report["findings"] = [row for row in report["findings"] if row["rule"] != RULE]
    report["precision"] = as_json(known)
    if not known.lost:
        return ""
    numbers = [int(row["id"][1:]) for row in report["findings"] if row["id"][1:].isdigit()]
    id = earlier[0] if earlier else f"F{max(numbers, default=0) + 1}"
    trials = [one for side in _sides(known) for one in side.trials]
    status = "confirmed" if known.proved else "inconclusive"
    report["findings"].append({
        "id": id, "rule": RULE, "severity": "warning", "title": title(known), "step": None, "rank": None, "certain": False,
        "symptoms": [], "symptom_texts": [], "where": _where(known, cwd), "evidence": evidence(known),
        "causes": [{"rule": RULE, "statement": statement(known), "status": status, "trials": [one.id for one in trials], "settled_by": ["keep-32"],
                    "why": conclusion(known)}],
        "remedies": [], "settle": "",
    })  # fmt: skip
    report["verdict"] = "sick"
    for one in {one.id: one for one in trials}.values():
        report["trials"].append({**trial_row(one, id, RULE, ""), "line": "", "score": known.measure.name})
    report["trials"] += [{"finding": id, "cause": RULE, "line": line} for line in lines(known)]
    report["trials"].append({"finding": id, "cause": RULE, "verdict": status, "line": f"{status}: {conclusion(known)}"})
    return id


def as_json(known: Precision) -> dict[str, Any]:
    return {
        "metric": known.measure.name, "higher_is_better": known.measure.higher, "in_16_bit": list(known.half.ends),
        "in_32_bit": list(known.full.ends), "lost": known.lost, "gap": _limits(known.gap),
        "modules": [{"module": e.module, "output": e.output, "gradient": e.gradient, "vanished": e.vanished, "overflowed": e.overflowed,
                     "overflows": e.overflows}
                    for e in known.tree.errors.values()],
        "tried": [{"kept": list(names), "won_back": share} for names, share in known.tested],
        "kept": list(known.kept), "with_these_kept": None if known.cured is None else list(known.cured.ends), "left": _limits(known.left),
        "all_but_these_kept": None if known.opposite is None else list(known.opposite.ends), "seconds_a_step": {
            side.label: side.pace for side in _sides(known)}, "said": no_loss(known) if not known.lost else conclusion(known),
    }  # fmt: skip


def _limits(found: Interval | None) -> list[float] | None:
    return None if found is None else list(found)


def _sides(known: Precision) -> list[Side]:
    return [side for side in (known.full, known.half, known.cured, known.opposite) if side is not None]


def title(known: Precision) -> str:
    if known.gap is None:
        return f"in 16 bit {known.half.broken} of {len(known.half.ends)} runs break, in 32 bit {known.full.broken} of {len(known.full.ends)}"
    before, after = mean(known.full.whole), mean(known.half.whole)
    way = "lower" if known.measure.higher else "higher"
    share = f"{abs(after - before) / abs(before):.1%}".replace("%", " %") + " " if before else ""
    return f"{known.measure.name} is {share}{way} in 16 bit: {before:.4g} → {after:.4g}"


def statement(known: Precision) -> str:
    if not known.kept:
        return "something does not bear 16 bit"
    return f"{_listed(known.kept)} {'does' if len(known.kept) == 1 else 'do'} not bear 16 bit"


def evidence(known: Precision) -> list[str]:
    """The gap, then the modules that 16 bit harms most."""
    told = [gap_words(known)] if known.gap is not None else []
    told += [f"in 16 bit {scaler}" for scaler in dict.fromkeys(one.outcome.scaler for one in known.half.trials[:1]) if scaler]
    errors = [known.tree.errors[module] for module in known.tree.ranked(known.tree.errors)]
    others = [error for error in errors if not known.tree.children(error.module) and error.module not in known.kept and error.severity[1] > 0]
    chosen = [*(known.tree.errors[module] for module in known.kept), *others][:MOST_SHOWN]
    if chosen:
        told.append("16 bit against 32 bit on the same inputs:")
    return told + [f"{error.module}: {words(error)}" for error in chosen]


def gap_words(known: Precision) -> str:
    assert known.gap is not None
    return (
        f"over {len(known.half.ends)} seeds {known.measure.name} loses {known.gap.mean:.3g} in 16 bit "
        f"(95 % interval {known.gap.low:.3g} to {known.gap.high:.3g})"
    )


def lines(known: Precision) -> list[str]:
    """The table of the search."""
    told = [_line(side, known) for side in (known.full, known.half)]
    told += [f"only {_listed(names)} in 32 bit wins back {_share(share)}" for names, share in known.tested if tuple(names) != known.kept]
    if known.cured is not None:
        told.append(f"{_line(known.cured, known)}   only {_listed(known.kept)} in 32 bit")
    if known.opposite is not None:
        told.append(f"{_line(known.opposite, known)}   everything else in 32 bit")
    return told + [text for text in [speed(known)] if text]


def _line(side: Side, known: Precision) -> str:
    pace = f"   {1000 * side.pace:.0f} ms a step" if side.pace else ""
    return f"{side.label:<15} {known.measure.name} {side.words()}{pace}"


def speed(known: Precision) -> str:
    """What is kept of the speed that 16 bit gives."""
    half, full, cured = known.half.pace, known.full.pace, known.cured.pace if known.cured is not None else None
    if half is None or full is None or cured is None:
        return ""
    share = f"these modules take {known.tree.time_share(known.kept):.1%} of the forward time".replace("%", " %")
    if half >= 0.97 * full:
        return f"speed: 16 bit is no faster than 32 bit on this machine, so there is nothing to keep; {share}"
    kept = (full - cured) / (full - half)
    return f"speed: {_share(kept)} of what 16 bit gains is kept; {share}"


def conclusion(known: Precision) -> str:
    if known.why_open:
        return known.why_open
    if known.cured is None:
        return "which modules lose it is not known"
    share = known.won_back(known.cured)
    told = f"with {_listed(known.kept)} in 32 bit {_share(share)} of the loss is won back over {len(known.cured.ends)} seeds"
    if known.left is not None:
        told += f"; what is left is {known.left.mean:.2g} (95 % interval {known.left.low:.2g} to {known.left.high:.2g})"
    if known.opposite is not None:
        told += f"; with everything else in 32 bit {_share(known.won_back(known.opposite))} is"
        if known.won_back(known.opposite) >= CLOSED:
            told += ", so these modules alone are not the reason"
    return told


def no_loss(known: Precision) -> str:
    """The sentence for a program that bears 16 bit, as far as can be told."""
    if known.half.broken or known.full.broken:
        return (
            f"No loss by 16 bit is shown: {known.half.broken} of {len(known.half.ends)} runs break in 16 bit and {known.full.broken} of "
            f"{len(known.full.ends)} in 32 bit, which may be chance or has another reason."
        )
    if known.gap is None:
        return "One seed tells nothing about chance; compare over two or more."
    gains = " It even ends better in 16 bit, beyond chance." if known.gap.high < 0 else ""
    return (
        f"No loss by 16 bit is found: {known.measure.name} is {mean(known.full.whole):.4g} in 32 bit and {mean(known.half.whole):.4g} in 16 bit, "
        f"over {len(known.half.ends)} seeds. The difference is {known.gap.mean:.2g} (95 % interval {known.gap.low:.2g} to {known.gap.high:.2g}): "
        f"if 16 bit does lose something, it is no more than {max(known.gap.high, 0.0):.2g}, with an error rate of 5 %.{gains}"
    )


def _where(known: Precision, cwd: Path) -> list[dict[str, Any]]:
    rows = []
    for module in known.kept:
        error, within = _called_by_the_user(known, module)
        if error is None or error.at is None:
            continue
        what = f"calls {error.module}" + (f", which contains {module}" if within else "")
        inputs = f", {len(error.given)} input{'s' if len(error.given) != 1 else ''}" + (" with structures" if "structure" in error.given else "")
        rows.append({"file": shown(error.at.file, cwd), "line": error.at.line, "code": code_at(error.at),
                     "note": f"{what}: keep it in 32 bit (on {error.device}{inputs})"})  # fmt: skip
    return rows


def _called_by_the_user(known: Precision, module: str) -> tuple[ModuleError | None, bool]:
    """The module itself if the user's own line calls it, else the nearest one around it, but never a whole model."""
    error = known.tree.errors.get(module)
    if error is None or error.at is not None:
        return error, False
    around = [known.tree.errors[above] for above in known.tree.above(module)[:-1]]
    return next((one for one in around if one.at is not None), None), True


def _listed(modules: tuple[str, ...]) -> str:
    return " + ".join(modules) if len(modules) <= 4 else f"{' + '.join(modules[:3])} and {len(modules) - 3} more"


def _share(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.0f} %"
