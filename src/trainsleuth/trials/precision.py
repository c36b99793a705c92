"""16 bit against 32 bit: how much accuracy is lost, which modules lose it, and the fewest to keep in 32 bit.

The same program runs with the same seeds in both precisions; the difference in its own score has an interval. One instrumented trial
compares every module on the same inputs and ranks them. Then modules are kept in 32 bit, the most suspicious first, until the loss is
gone, and what is not needed is let go again. What is found is tried with all seeds, beside its opposite: everything else in 32 bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median

from trainsleuth.case.folder import write_json
from trainsleuth.case.run_chart import RunChart
from trainsleuth.trials import ends, halves
from trainsleuth.trials.bench import Bench, OutOfTime, require_sandbox
from trainsleuth.trials.chance import ERROR_RATE, Interval, happens_less, interval
from trainsleuth.trials.ends import Measure
from trainsleuth.trials.halves import Tree
from trainsleuth.trials.pairs import Events, collect, long_enough, seeds, with_seed
from trainsleuth.trials.settle import Event, Note
from trainsleuth.trials.smallest import first_enough
from trainsleuth.trials.trial import Known, Setting, Trial, facts_of

REMEMBERED = "precision.json"  # beside the trials: what was asked, so that a patch is tried in the same way
CLOSED = 0.75  # of the loss must be won back
CLEAR = 2.0  # a loss of so many half widths of its interval is searched for with two seeds, a smaller one with all
LOOKS = (0.05, 0.3, 0.6, 0.9)  # where in the run modules are compared
Enough = Callable[[Sequence[str]], Generator[Event, None, bool]]
OWN = "own"


@dataclass(frozen=True)
class Asked:
    """What is to be compared: 16 bit as the program has it or as named, over so many seeds, by this metric."""

    dtype: str = OWN  # own, bf16, fp16
    seeds: int = 4
    metric: str | None = None
    windows: int = 0  # steps a trial; 0: as it turns out


@dataclass(frozen=True)
class Side:
    """Runs of one kind over the seeds."""

    label: str
    trials: tuple[Known, ...]
    ends: tuple[float | None, ...]  # None: that run broke

    @property
    def whole(self) -> list[float]:
        return [end for end in self.ends if end is not None]

    @property
    def broken(self) -> int:
        return sum(end is None for end in self.ends)

    def words(self) -> str:
        return " ".join("broke" if end is None else f"{end:.4g}" for end in self.ends)

    @property
    def pace(self) -> float | None:
        """Seconds a step."""
        paces = [known.outcome.pace for known in self.trials if known.outcome.pace]
        return median(paces) if paces else None


@dataclass(frozen=True)
class Precision:
    """All that was found out."""

    measure: Measure
    half: Side
    full: Side
    gap: Interval | None  # what 16 bit loses; None where runs broke, or there are too few
    lost: bool
    tree: Tree = field(default_factory=lambda: Tree([]))
    tested: tuple[tuple[tuple[str, ...], float], ...] = ()  # modules kept in 32 bit, and the share of the loss that this won back
    kept: tuple[str, ...] = ()
    cured: Side | None = None  # with these modules in 32 bit
    left: Interval | None = None  # what is still lost then
    opposite: Side | None = None  # everything but these in 32 bit
    why_open: str = ""  # why no modules are named

    @property
    def proved(self) -> bool:
        """The modules are enough with every seed, and everything else is not."""
        return bool(self.kept) and self.cured is not None and self.won_back(self.cured) >= CLOSED and (
            self.opposite is None or self.won_back(self.opposite) < CLOSED
        )  # fmt: skip

    def won_back(self, side: Side) -> float:
        return won_back(self.measure, self.half, self.full, side)


def won_back(measure: Measure, half: Side, full: Side, side: Side) -> float:
    """The share of what 16 bit loses that these runs do not lose, over the seeds that they have."""
    if half.broken:
        return 1 - side.broken / len(side.ends)
    if side.broken:
        return 0.0
    seeds = range(len(side.ends))
    lost = sum(measure.gain(half.ends[n] or 0.0, full.ends[n] or 0.0) for n in seeds)
    gained = sum(measure.gain(half.ends[n] or 0.0, side.ends[n] or 0.0) for n in seeds)
    return gained / lost if lost > 0 else 0.0


def search(bench: Bench, asked: Asked) -> Iterator[Event | Precision]:
    """Measure the loss, and find what it comes from; the last word is what is known."""
    require_sandbox(bench.unsafe)
    yield from long_enough(bench, 4 * asked.seeds)
    hunt = _Hunt(bench, asked)
    write_json(bench.case.trials / REMEMBERED, asdict(replace(asked, windows=bench.windows)))
    try:
        if not (yield from hunt.sides()):
            return
        known = hunt.gap()
    except OutOfTime:
        yield Note("the budget was used up before both precisions had run with every seed; the trials that were run are kept")
        return
    if known is None:
        yield Note(f"the program logs and prints no {asked.metric}, so there is nothing to compare")
        return
    if known.lost:
        try:
            known = yield from hunt.modules(known)
        except OutOfTime:
            known = replace(known, why_open="the budget was used up before the modules were found; the trials that were run are kept")
    yield known


@dataclass(frozen=True)
class Patched:
    """What a patch wins back of what 16 bit loses."""

    known: Precision
    side: Side
    share: float

    @property
    def ok(self) -> bool:
        return self.known.lost and not self.side.broken and self.share >= CLOSED


def check(bench: Bench, files: Mapping[Path, bytes]) -> Iterator[Event | Patched]:
    """Run the patched program with every seed of the search, beside the runs in 16 and in 32 bit, which are known from it."""
    asked = _remembered(bench)
    bench.windows = asked.windows or bench.windows
    hunt = _Hunt(bench, asked)
    if not (yield from hunt.sides()):
        return
    known = hunt.gap()
    if known is None:
        return
    trials = [hunt.patched(files, seed) for seed in hunt.seeds]
    yield from hunt.run(trials)
    side = hunt.side("patched", trials, known.measure)
    yield Patched(known, side, known.won_back(side))


def _remembered(bench: Bench) -> Asked:
    try:
        return Asked(**json.loads((bench.case.trials / REMEMBERED).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Asked()


class _Hunt:
    """The trials of one search, by what they keep in 32 bit."""

    def __init__(self, bench: Bench, asked: Asked) -> None:
        self.bench, self.asked = bench, asked
        self.seeds = seeds(asked.seeds)
        self.steps: int | None = None  # that all trials have in common
        self.half_settings: tuple[Setting, ...] = ()
        self.full_settings: tuple[Setting, ...] = (Setting("precision-32"),)
        self.got: dict[str, Known] = {}
        self.tested: dict[frozenset[str], tuple[tuple[str, ...], float]] = {}

    # -- both precisions -----------------------------------------------------------------------------------------------

    def sides(self) -> Generator[Event, None, bool]:
        """Run both precisions with every seed; False where there is nothing to compare."""
        dtype = self.asked.dtype
        if dtype != OWN:
            self.half_settings = (Setting(f"precision-{dtype}"), *((Setting("scaler-on"),) if dtype == "fp16" else ()))
        yield from self.run([self.full(None)], share=6)
        if not self.got[self.full(None).key].outcome.acted:
            self.full_settings = ()
            if dtype == OWN:
                yield Note("the program computes in 32 bit; its models are called under autocast to bfloat16 for the comparison")
                self.half_settings = (Setting("precision-bf16"),)
        yield from self.run([one for seed in self.seeds for one in (self.half(seed), self.full(seed))], share=2)
        for label, one in (("32 bit", self.full(None)), ("16 bit", self.half(None))):
            outcome = self.got[one.key].outcome
            if outcome.kind in ("crash", "hang", "not applicable"):
                yield Note(f"nothing can be compared, because the program in {label} does not get as far as training: {outcome.why or outcome.kind}")
                return False
        return True

    def half(self, seed: int | None) -> Trial:
        return self._trial("16 bit", self.half_settings, seed)

    def full(self, seed: int | None) -> Trial:
        return self._trial("32 bit", self.full_settings, seed)

    def keeping(self, modules: Sequence[str], seed: int | None, back: bool = False) -> Trial:
        """With `back`, what these modules return is of 16 bit again: the others shall compute in 16 bit."""
        label = f"32 bit: {', '.join(modules[:3])}{' …' if len(modules) > 3 else ''}"
        options = {"modules": sorted(modules), **({"back": True} if back else {})}
        return self._trial(label, (Setting("keep-32", options), *self.half_settings), seed)

    def patched(self, files: Mapping[Path, bytes], seed: int | None) -> Trial:
        return self._trial("patched", self.half_settings, seed, files)

    def _trial(self, label: str, settings: Sequence[Setting], seed: int | None, files: Mapping[Path, bytes] | None = None) -> Trial:
        return with_seed(self.bench, label, settings, seed, files)

    def run(self, wanted: Sequence[Trial], share: int = 1) -> Events:
        return collect(self.bench, wanted, self.got, share)

    def side(self, label: str, trials: Sequence[Trial], measure: Measure) -> Side:
        known = tuple(self.got[one.key] for one in trials)
        return Side(label, known, tuple(ends.value(one.outcome, measure, self.steps) for one in known))

    def gap(self) -> Precision | None:
        """What 16 bit loses, seed by seed."""
        runs = {label: [self.got[make(seed).key].outcome for seed in self.seeds]
                for label, make in (("16 bit", self.half), ("32 bit", self.full))}  # fmt: skip
        both = [*runs["16 bit"], *runs["32 bit"]]
        measure = ends.choose(both, self.asked.metric)
        if measure is None:
            return None
        self.steps = min((one.curve[-1][0] for one in both if one.curve and one.kind not in ends.BROKEN), default=None)
        half = self.side("16 bit", [self.half(seed) for seed in self.seeds], measure)
        full = self.side("32 bit", [self.full(seed) for seed in self.seeds], measure)
        if half.broken or full.broken:
            chance = happens_less([end is None for end in half.ends], [end is None for end in full.ends])
            return Precision(measure, half, full, None, half.broken > full.broken and chance <= ERROR_RATE + 1e-9)
        lost = [measure.gain(a, b) for a, b in zip(half.whole, full.whole)]
        found = interval(lost, ends.noise(both, measure))
        return Precision(measure, half, full, found, found is not None and found.low > 0)

    # -- the modules ---------------------------------------------------------------------------------------------------

    def modules(self, known: Precision) -> Generator[Event, None, Precision]:
        """Rank the modules, find the fewest that are enough, and try them with every seed."""
        looks = Setting("compare-halves", {"windows": self._windows(known.half)})
        instrument = self.bench.trial("knob", "modules compared", [looks, *self.half_settings])
        yield from self.run([instrument], share=4)
        tree = halves.read(self.bench.case.trials / self.got[instrument.key].id)
        known = replace(known, tree=tree)
        if not tree.errors:
            said = "no module computes under autocast: weights of 16 bit lose by themselves, and autocast would keep them in 32 bit"
            return replace(known, why_open=said)

        def enough(modules: Sequence[str]) -> Generator[Event, None, bool]:
            return (yield from self._wins_back(known, modules)) >= CLOSED

        try:
            kept = yield from self._fewest(tree, enough)
            if not kept:
                said = "all modules in 32 bit do not win the loss back, so it arises outside of them: in the loop, or in functions called there"
                return replace(known, tested=tuple(self.tested.values()), why_open=said)
        except OutOfTime:
            good: list[tuple[str, ...]] = [names for names, share in self.tested.values() if share >= CLOSED]
            if not good:
                raise
            kept = list(good[-1])
            yield Note("the budget is used up; a smaller set of modules may be enough")
        return (yield from self._confirmed(replace(known, tested=tuple(self.tested.values())), tuple(kept)))

    def _windows(self, half: Side) -> list[int]:
        """Where modules are compared: through the run, and where a scaler skipped steps."""
        first = half.trials[0]
        chart = RunChart(facts_of(self.bench.case.trials / first.id))
        chart.refresh()
        skips = [int(fact["window"]) for each in chart.processes.values() for fact in each.skips if fact.get("window")]
        looks = {max(1, int(share * first.outcome.windows)) for share in LOOKS}
        return sorted(looks | set(skips[:: max(1, len(skips) // 2)][:2]))

    def _wins_back(self, known: Precision, modules: Sequence[str]) -> Generator[Event, None, float]:
        asked = frozenset(modules)
        if asked not in self.tested:
            trials = [self.keeping(modules, seed) for seed in self._search_seeds(known)]
            yield from self.run(trials, share=3)
            share = known.won_back(self.side("kept", trials, known.measure))
            self.tested[asked] = (tuple(modules), share)
        return self.tested[asked][1]

    def _search_seeds(self, known: Precision) -> tuple[int | None, ...]:
        if known.gap is None:
            return self.seeds[:2]
        clear = known.gap.mean > CLEAR * (known.gap.high - known.gap.mean)
        return self.seeds[:2] if clear else self.seeds

    def _fewest(self, tree: Tree, enough: Enough) -> Generator[Event, None, list[str]]:
        """The prime suspect first; else from the models downwards, into the parts of whatever is needed."""
        suspect = tree.prime_suspect()
        kept = [suspect] if (yield from enough([suspect])) else (yield from first_enough(tree.roots(), enough))
        queue = list(kept)
        while queue:
            whole = queue.pop(0)
            rest = [module for module in kept if module != whole]
            parts = tree.children(whole)

            def together(chosen: Sequence[str], rest: Sequence[str] = rest) -> Generator[Event, None, bool]:
                return (yield from enough([*rest, *chosen]))

            found = (yield from first_enough(parts, together)) if parts else []
            if found:
                kept = [*rest, *found]
                queue += found
        return kept

    def _confirmed(self, known: Precision, kept: tuple[str, ...]) -> Generator[Event, None, Precision]:
        """Every seed with these modules in 32 bit, and some with everything else."""
        trials = [self.keeping(kept, seed) for seed in self.seeds]
        yield from self.run(trials, share=2)
        cured = self.side("kept in 32 bit", trials, known.measure)
        left = None
        if not (cured.broken or known.full.broken):
            differences = [known.measure.gain(a, b) for a, b in zip(cured.whole, known.full.whole)]
            left = interval(differences, ends.noise([one.outcome for one in cured.trials], known.measure))
        known = replace(known, kept=kept, cured=cured, left=left)
        others = known.tree.all_but(kept)
        if not others:
            return known
        opposite = [self.keeping(others, seed, back=True) for seed in self._search_seeds(known)[:2]]
        try:
            yield from self.run(opposite)
        except OutOfTime:
            return known
        return replace(known, opposite=self.side("the others", opposite, known.measure))

