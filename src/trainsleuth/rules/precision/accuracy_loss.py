"""A run in 16 bit ends with a worse score than the same run in 32 bit.

What it detects
    Several runs, or lines that sum up several runs, that name their precision and give the same score: the ones in 16 bit end lower than
    the ones in 32 bit by more than two in a hundred. Or `trainsleuth prove CASE --precision` has run the program with the same seeds in
    both, and the interval of the difference excludes zero.
Why it matters
    The speed is bought with accuracy, or something that 16 bit cannot bear (a loss, a normalisation, a missing scaler) is cured by
    giving up all of its speed.
How it is confirmed
    Not from single runs: seeds differ. `prove CASE --precision` gives the gap with its interval, compares every module in 16 and 32 bit on the
    same inputs, and searches the fewest modules that win the loss back when they alone are kept in 32 bit; everything else in 32 bit is
    the placebo, and must not.
How to cure it
    Keep in 32 bit only the modules that need it: `fix CASE precision/accuracy-loss` writes that, `--verify` tries it with every seed. Or
    bfloat16, if it loses nothing.
When it is wrong
    One run of each is no proof: two runs with other seeds may differ as much. The finding is a suspicion and says so.
"""

import re
from dataclasses import dataclass

from trainsleuth.case.record_chart import RecordChart, SourceRecord
from trainsleuth.case.roles import role_of
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Seen, Spot, Verdict, records_rule
from trainsleuth.rules.wording import number, percent

_HALF = re.compile(r"(?i)(?<![\w.])(?:(?:fp|bf|float|bfloat|f)?16(?:[- ]?(?:bit|mixed|true|fp))?|half|amp|O1|O2|mixed)(?![\w.])")
_FULL = re.compile(r"(?i)(?<![\w.])(?:(?:fp|float|f)?32(?:[- ]?(?:bit|true|fp))?|full|O0|no)(?![\w.])")
_TAGGED = re.compile(r"(?i)(?:\b(?:fp|bf|float|bfloat)?(16|32)[- ]?(?:bit|mixed|true|-?precision)\b|\b(?:fp|bf|float|bfloat)(16|32)\b)")
_SCORE = re.compile(r"([A-Za-z][\w@-]{1,30})\s*[:= ]\s*(\d*\.\d+|\d+(?:\.\d+)?%)")
LEAST_GAP = 0.02


@dataclass(frozen=True)
class Outcome:
    half: bool
    score: str
    value: float
    spot: Spot | None
    words: str


@records_rule("precision/accuracy-loss")
def rule(chart: RecordChart) -> Verdict:
    outcomes = [outcome for source in chart.sources.values() for outcome in [*_of_runs(source), *_of_lines(source)]]
    for score in dict.fromkeys(outcome.score for outcome in outcomes):
        half = [o for o in outcomes if o.score == score and o.half]
        full = [o for o in outcomes if o.score == score and not o.half]
        if not half or not full:
            continue
        low, high = max(half, key=lambda o: o.value), max(full, key=lambda o: o.value)
        if high.value <= 0 or low.value > (1 - LEAST_GAP) * high.value:
            continue
        return Seen(
            title=f"{score} is {percent((high.value - low.value) / high.value)} lower in 16 bit: {number(high.value)} → {number(low.value)}",
            where=[high.spot, low.spot],
            evidence=[
                *[o.words for o in (high, low)],
                f"{len(full)} run{'s' if len(full) > 1 else ''} in 32 bit and {len(half)} in 16 bit: seeds may explain a part of it",
            ],
            severity="warning",
            statement="something in the model or the loop does not bear 16 bit",
            advice=["Look for a missing gradient scaler, for clipping before unscaling, and for losses and normalisations computed in 16 bit."],
            certain=False,
            settle="run the program under `trainsleuth run`, then `trainsleuth prove CASE --precision`: the same seeds in both precisions, and which "
            "modules lose it",
        )
    return None


def _of_runs(source: SourceRecord) -> list[Outcome]:
    setting = source.setting("precision", "amp", "mixed_precision", "use_amp", "amp_opt_level", "opt_level", "fp16", "dtype")
    if setting is None or isinstance(setting, bool):
        half = setting
    else:
        half = True if _HALF.search(str(setting)) else False if _FULL.search(str(setting)) else None
    if half is None:
        return []
    return [
        Outcome(half, score.name, score.most, records.spot(source, score.last_line, "16 bit" if half else "32 bit"),
                f"{source.path}: precision {setting}, best {score.name} {score.text_of(score.most)}")
        for run in records.runs(source) for score in run.of_role("score") if score.count and score.split != "train"
    ]  # fmt: skip


def _of_lines(source: SourceRecord) -> list[Outcome]:
    """Lines that name a precision and a score, as people write them under their tables."""
    found = []
    for message in source.messages.values():
        for text, line in {(message.text, message.line), (message.last_text, message.last_line)}:
            tag = _TAGGED.search(text)
            if tag is None:
                continue
            for name, value in _SCORE.findall(text[: tag.start()] + " " + text[tag.end() :]):
                if role_of(name) == "score":
                    number_ = float(value.rstrip("%"))
                    found.append(Outcome((tag[1] or tag[2]) == "16", name, number_, records.spot(source, line), f"line {line:,}: {text[:140]}"))
    return found
