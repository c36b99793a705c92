"""Every class is predicted with the same probability, at every step.

What it detects
    The entropy of the predictions is that of a uniform guess over all C classes, from the first look to the last, and the loss
    does not move from ln C. The number is decoded: 0.3105 is ln 12 rounded to half precision, divided by 8 accumulation steps.
    From a log alone: a loss that is printed the same from the first line to the last, and what that number can mean, the likeliest first.
Why it matters
    The model says nothing about its input. The value of the loss alone tells how many classes it sees, what divides the loss,
    and in which precision it is computed.
How it is confirmed
    From the predictions at the loss call. Which fault makes them uniform is settled by the causes; if none is found, look at
    what scales the logits: a lost temperature or logit scale, features that are all equal, a head that never moves.
How to cure it
    Restore the scale of the logits (CLIP multiplies cosine similarities by about 100), or cure the cause that is named.
When it is wrong
    A head that is initialised with zeros is uniform at first; the rule waits until the loss had forty chances to move.
    A clamp or a floor may land near ln 10 by chance; the entropy of the predictions tells it apart.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.record_chart import RunRecord, SourceRecord
from trainsleuth.case.series import Series
from trainsleuth.rules import records
from trainsleuth.rules.decode import Reading, decode_bare, decode_known, plausible, rounded
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, record_rule, symptom_rule
from trainsleuth.rules.standing import CLASS_LOSSES, standing
from trainsleuth.rules.wording import number


@symptom_rule("stall/uniform-predictions")
def rule(chart: ProcessChart) -> Verdict:
    now = standing(chart)
    if isinstance(now, str):
        return Missing(now)
    if now.calls.function not in CLASS_LOSSES or now.classes is None or now.uniform is None:
        return None
    entropies = now.calls.numbers("entropy")
    if len(entropies) < 3 or not now.still:
        return None
    share = min(entropies[-3:]) / math.log(now.classes)
    if share < 0.995 or abs(now.level - now.uniform) > 0.02 * now.uniform:
        return None
    reading = decode_known(now.curve.last, now.classes, int(now.divisor))
    sizes, spreads = now.calls.numbers("size"), now.calls.numbers("spread")
    logits = (
        f"logits of size {number(sizes[-1])} that differ by {number(spreads[-1])} between samples" if sizes and spreads else ""
    )
    words = f"{reading.words()}" if reading else f"near ln {now.classes}"
    flat_to_the_digit = now.curve.most - now.curve.least < 1e-6 * now.curve.most
    return Seen(
        title=f"loss {'fixed' if flat_to_the_digit else 'flat'} at {now.curve.last:.4f} = {words}: "
        f"{now.classes} equally likely classes",
        where=[Spot(now.calls.at, "the predictions that arrive here are uniform") if now.calls.at else None],
        evidence=[
            f"entropy of the predictions: {100 * share:.2f} % of ln {now.classes} in the last {min(3, len(entropies))} looks",
            f"{now.curve.count:,} values of the loss between {now.curve.least:.4f} and {now.curve.most:.4f}",
            *([f"at the loss: {logits}"] if logits else []),
            *([f"divided by {int(now.divisor)} before backward"] if now.divisor > 1 else []),
        ],
        severity="critical",
        statement="the logits are too small or too equal to tell classes apart",
        advice=["Look at what scales the logits: a temperature or logit scale that was lost, features that are all alike."],
        certain=True,
    )


@record_rule("stall/uniform-predictions")
def record(source: SourceRecord) -> Verdict:
    for run in records.runs(source):
        loss = run.main_loss()
        if loss is None or not records.long_enough(loss):
            return Missing("ten values of the training loss, or three that are 500 steps apart")
        if records.in_a_game(run) or loss.last <= 0 or loss.most > 1.05 * loss.least:
            continue
        readings = _readings(source, run, loss)
        believed = bool(readings) and (plausible(readings[0]) or readings[0].classes in _known(source, run))
        if believed and loss.flat_to_the_digit() and loss.significant_digits() >= 3:
            return _decoded(source, run, loss, readings)
        if readings and loss.count >= 40 and _known(source, run):
            return _decoded(source, run, loss, readings)
    return None


def _known(source: SourceRecord, run: RunRecord) -> set[int]:
    """Numbers of classes that the log itself speaks of: a setting, or a score that is exactly one of so many."""
    found = {number for number in [records.classes(source)] if number}
    for score in run.of_role("score"):
        digits, level = score.digits or 0, score.last / records.scale_of(score)
        if score.count and digits >= 3 and (score.count == 1 or score.flat_to_the_digit()) and 0.0005 < level < 0.6:
            classes = round(1 / level)
            if abs(1 / classes - level) <= 0.51 * 10.0**-digits * (1 if records.scale_of(score) == 1 else 0.01):
                found.add(classes)
    return found


def _readings(source: SourceRecord, run: RunRecord, loss: Series) -> list[Reading]:
    """What the number can mean; readings that the log supports come first."""
    known, divisor = _known(source, run), records.accumulation(source)
    digits = max(1, loss.digits if loss.digits is not None else 6)
    text = f"{loss.last:.{digits}f}"
    if not loss.flat_to_the_digit():
        level, spread = loss.mean_between(0, 1), 4 * loss.noise(0, 1) + 0.002 * loss.last
        near = [Reading(c, k, "float32", math.log(c) / k) for c in known for k in {1, divisor}]
        return [reading for reading in near if abs(reading.exact - level) < spread]
    round_number = f"{loss.last:.1f}" == f"{float(text):g}" or float(text).is_integer()
    found = decode_bare(text) if digits >= 3 and not round_number else []
    if loss.last > 7:
        found += [Reading(c, 1, "float32", math.log(c)) for c in known if f"{math.log(c):.{digits}f}" == text]
    return sorted(found, key=lambda reading: (reading.classes not in known, divisor > 1 and reading.divisor != divisor))


def _decoded(source: SourceRecord, run: RunRecord, loss: Series, readings: list[Reading]) -> Seen:
    best, known, digits = readings[0], _known(source, run), loss.digits or 4
    printed, exactly = loss.text_of(loss.last), loss.flat_to_the_digit()
    supported = best.classes in known
    words = _words(best, digits)
    others = "; ".join(_words(reading, digits) for reading in readings[1:4])
    evidence = [
        f"{loss.name}: {loss.count:,} values from {records.at(loss.intervals[0])} to {records.at(loss.intervals[-1])}, "
        + (f"each printed as {printed}" if exactly else f"between {loss.text_of(loss.least)} and {loss.text_of(loss.most)}, no trend"),
    ]
    if best.dtype != "float32":
        plain = math.log(best.classes) / best.divisor
        evidence.append(
            f"ln {best.classes} = {math.log(best.classes):.4f} is {rounded(math.log(best.classes), best.dtype):.6f} in half precision; "
            f"{f'divided by {best.divisor} ' if best.divisor > 1 else ''}it prints {best.exact:.{digits}f}, "
            f"and in float32 it would print {plain:.{digits}f}"
        )
    if supported:
        evidence.append(f"the log itself speaks of {best.classes} classes")
    if others:
        evidence.append(f"{'it could also be' if not supported else 'less likely'}: {others}")
    return Seen(
        title=f"loss fixed at {printed} = {words}: {best.classes} equally likely classes"
        if supported or len(readings) == 1
        else f"loss fixed at {printed} from the first line to the last; most likely {words}: equally likely classes",
        where=[records.spot(source, loss.first_line, "the first"), records.spot(source, loss.last_line, "the last")],
        evidence=[*evidence, *_scores(run), *_not_the_rate(run)],
        severity="critical",
        step=loss.last_step,
        statement="the model gives every class the same probability and nothing moves it",
        advice=["Look whether the optimizer steps, whether it holds the parameters of the model that is called, and at what scales the logits."],
        certain=False,
        settle=records.UNDER_WATCH,
    )


def _words(reading: Reading, digits: int) -> str:
    """Where both half precisions print the same, neither is named."""
    exact = math.log(reading.classes)
    both = {f"{rounded(exact, dtype) / reading.divisor:.{digits}f}" for dtype in ("float16", "bfloat16")}
    return reading.words().replace(reading.dtype, "half precision") if len(both) == 1 else reading.words()


def _scores(run: RunRecord) -> list[str]:
    shown = [score for score in run.of_role("score", "error") if score.count][:3]
    return [
        f"{score.name} {score.text_of(score.first)} → {score.text_of(score.last)}"
        if score.count > 1 else f"{score.name} {score.text_of(score.last)}" for score in shown
    ]  # fmt: skip


def _not_the_rate(run: RunRecord) -> list[str]:
    rate = run.rate()
    if rate is None or not rate.count or rate.most <= 0 or rate.most == rate.least:
        return []
    return [f"it is not the schedule: the learning rate went from {number(rate.first)} to {number(rate.most)}, and the loss did not move"]
