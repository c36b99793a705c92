"""What kind of accident made the first NaN or Inf: told from the operation, its operands, and where it happened."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.curve import Curve
from trainsleuth.case.entries import Place, place
from trainsleuth.case.reading import Fact
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict
from trainsleuth.rules.wording import number

SYMPTOMS = ("nan/loss-not-finite", "crash/exception", "stall/flat-loss", "stall/uniform-predictions")
KINDS = (
    "nan/bad-sample", "nan/log-of-zero", "nan/sqrt-at-zero", "nan/zero-division", "nan/exp-overflow", "nan/half-overflow",
    "nan/softmax-of-empty-row", "nan/variance-of-one-sample", "nan/where-trap", "nan/ctc-infinite", "nan/diverged", "nan/first-operation",
)  # fmt: skip
CONSEQUENCES = (
    "stall/input-ignored", "stall/metric-does-not-follow-loss", "stall/dead-units", "stall/vanishing-gradient",
    "stall/inputs-and-targets-misaligned", "stall/scaler-skips-steps", "stall/no-gradient", "data/not-normalised", "crash/known",
)  # fmt: skip
LOGARITHMS = ("log", "log2", "log10", "log1p", "logit", "xlogy", "special_xlog1py", "binary_cross_entropy")
ROOTS = ("sqrt", "rsqrt", "norm", "linalg_vector_norm", "_cdist_forward", "_euclidean_dist", "std", "frobenius_norm")
EXPONENTIALS = ("exp", "exp2", "expm1", "cosh", "sinh")
QUOTIENTS = ("div", "reciprocal", "true_divide", "remainder", "fmod", "floor_divide", "addcdiv", "mean", "nll_loss_forward",
             "nll_loss2d_forward", "nansum", "nanmean")  # fmt: skip
SPREADS = ("std", "var", "std_mean", "var_mean")
WORDS = {"nan": "NaN", "inf": "infinite"}
GROWTH = 30.0  # the loss has grown to so many times its least value before it broke


@dataclass(frozen=True)
class Origin:
    """The first bad operation, as an examination found it."""

    fact: Fact  # the examination
    about: dict[str, Any]

    @property
    def base(self) -> str:
        """log of aten.log_.default"""
        return str(self.about["op"]).removeprefix("aten.").split(".")[0].rstrip("_")

    @property
    def node(self) -> str:
        """sqrt of SqrtBackward0"""
        return str(self.about.get("node") or "").split("Backward")[0]

    @property
    def at(self) -> Place | None:
        return place(self.about.get("at"))

    @property
    def backward(self) -> bool:
        return self.about.get("phase") == "backward"

    @property
    def operands(self) -> list[dict[str, Any]]:
        return [operand for operand in self.about.get("inputs") or [] if "least" in operand]

    @property
    def role(self) -> dict[str, Any]:
        return self.about.get("role") or {}


def origin_of(chart: ProcessChart) -> Origin | None:
    for fact in reversed(chart.examined):
        if fact.get("result") == "origin" and isinstance(fact.get("origin"), dict):
            return Origin(fact, fact["origin"])
    return None


def went_bad(chart: ProcessChart) -> bool:
    return chart.bad_between is not None or stopped_by_itself(chart) or unscaled_and_bad(chart) is not None


def unscaled_and_bad(chart: ProcessChart) -> int | None:
    """The window from which a scaler, whose scale has fallen to one and below, still skipped every step: it is not the scale that is too large."""
    fallen = next((fact for fact in chart.skips if isinstance(scale := fact.get("scale"), (int, float)) and scale <= 1), None)
    if fallen is None:
        return None
    made = sum(row["n"] - row["skipped"] for optimizer in chart.optimizers.values() for row in optimizer.recent)
    return int(fallen["window"]) if not made else None


def stopped_by_itself(chart: ProcessChart) -> bool:
    """Whether the program stopped with a bad number at hand: it may have looked for one."""
    return bool((chart.crash or {}).get("bad_values") or chart.quit)


def recovered(chart: ProcessChart) -> bool:
    """The program lived on: it skipped the bad step, or a scaler did, and its numbers have been finite for long."""
    if chart.crash is not None or chart.quit is not None or chart.bad_parameters or unscaled_and_bad(chart) is not None:
        return False
    return all(has_recovered(curve) for curve in chart.losses.values())


def has_recovered(curve: Curve) -> bool:
    """Whether the last quarter of a loss was finite throughout."""
    return not curve.not_finite or (math.isfinite(curve.last) and curve.last_bad <= 0.75 * curve.count)


def kind_of(origin: Origin, chart: ProcessChart) -> str:
    """The name of the rule, without its family."""
    about, base = origin.about, origin.base
    if about["op"] == "given":
        return _given(origin, chart)
    if about.get("phase") == "step":
        return "diverged"
    if about.get("fits_in_float"):
        return "half-overflow"
    if about.get("row_of_minus_inf") or "scaled_dot_product" in base or origin.node == "Logsumexp":
        return "softmax-of-empty-row"
    if "ctc_loss" in base or "Ctc" in origin.node:
        return "ctc-infinite"
    if base in SPREADS and not origin.backward:
        return "variance-of-one-sample"
    by_name = _by_name(origin, chart)
    return "where-trap" if _masked(origin, by_name) else by_name


def _masked(origin: Origin, by_name: str) -> bool:
    """Whether the value was discarded and only its gradient did harm.

    The root of zero is a good value: masking it is nothing unusual, unless torch.where chose between it and something else.
    """
    if origin.fact.get("sink") == "gradient" and not origin.backward:
        return True
    if not origin.about.get("zero_gradient"):
        return False
    return by_name != "sqrt-at-zero" or "Where" in " ".join(origin.fact.get("used_by") or [])


def _given(origin: Origin, chart: ProcessChart) -> str:
    kind = origin.role.get("kind")
    if kind == "data":
        return "bad-sample"
    if kind in ("gradient", "parameter") and _grew(chart):
        return "diverged"  # it overflowed where nobody looked, inside of a backward
    return "bad-weights" if kind in ("parameter", "buffer") and int(origin.fact.get("backwards") or 0) <= 1 else "first-operation"


def _by_name(origin: Origin, chart: ProcessChart) -> str:
    name = origin.node.lower() if origin.backward else origin.base
    negative_base = origin.base == "pow" and origin.operands and origin.operands[0]["least"] <= 0 and origin.about["bad"] == "nan"
    if name in LOGARITHMS:
        return "log-of-zero"
    if name in ROOTS or name in ("linalgvectornorm", "cdist", "euclideandist") or negative_base or _pow_at_zero(origin):
        return "sqrt-at-zero"
    if name in EXPONENTIALS or origin.about["op"] == "aten.pow.Scalar":
        return "exp-overflow"
    if name in QUOTIENTS and not _sum_overflowed(origin):
        return "zero-division"
    return "diverged" if _grew(chart) or _huge(origin) else "first-operation"


def _sum_overflowed(origin: Origin) -> bool:
    """A mean, or a quotient by something other than zero, of numbers that are too large to be added up."""
    divides = origin.base not in ("mean", "nll_loss_forward", "nll_loss2d_forward", "nansum", "nanmean")
    by_zero = divides and any(operand.get("zeros") for operand in origin.operands[-1:])
    return origin.about["bad"] == "inf" and _huge(origin) and not by_zero


def _pow_at_zero(origin: Origin) -> bool:
    return origin.backward and origin.node == "Pow" and any(operand.get("zeros") for operand in origin.operands)


def _huge(origin: Origin) -> bool:
    """Operands so large that only growth over many steps explains them."""
    return any(max(abs(operand["least"]), abs(operand["most"])) > 1e15 for operand in origin.operands)


def growth(chart: ProcessChart) -> list[tuple[int, float]]:
    """The last finite losses, if they rose and rose: backward and loss."""
    main = chart.main_loss()
    if main is None:
        return []
    points = [(point.to, point.most) for point in main[1].points]
    values = [value for value in main[1].first_values if math.isfinite(value)]
    if len(points) < 4 and len(values) >= 4:
        points = list(enumerate(values, 1))
    lowest = min(range(len(points)), key=lambda at: points[at][1], default=0)
    return points[lowest:]


def _grew(chart: ProcessChart) -> bool:
    course = growth(chart)
    if len(course) < 3 or course[0][1] <= 0:
        return False
    return course[-1][1] > GROWTH * course[0][1] and max(value for _, value in course) == course[-1][1]


# -- what is said ------------------------------------------------------------------------------------------------------


def judged(
    chart: ProcessChart, kind: str, title: str, advice: Sequence[str], *, note: str = "", evidence: Sequence[str] = ()
) -> Verdict:
    """The verdict of the rule for one kind: nothing, what is missing, or the finding."""
    if not went_bad(chart):
        return None
    origin = origin_of(chart)
    if origin is None:
        return _why_not(chart)
    if kind_of(origin, chart) != kind:
        return None
    return Seen(
        title=title,
        where=_spots(origin, note or title),
        evidence=[*_evidence(origin), *evidence],
        advice=advice,
        severity="note" if recovered(chart) else "critical",
        step=int(origin.fact.get("windows") or 0) + 1,
    )


def _why_not(chart: ProcessChart) -> Missing:
    last = chart.examined[-1] if chart.examined else None
    if last is None:
        return Missing("an examination of the step at which it went wrong (trainsleuth prove)")
    return Missing(f"an examination that finds the origin ({last.get('why') or last.get('result')})")


def _spots(origin: Origin, note: str) -> list[Spot | Place | None]:
    spots: list[Spot | Place | None] = [Spot(at, note) for at in [origin.at] if at]
    above = [at for row in origin.about.get("above") or [] if (at := place(row))]
    spots += [Spot(at, "called from here") for at in above[:1]]
    return spots


def _evidence(origin: Origin) -> list[str]:
    about, fact = origin.about, origin.fact
    module = f" in module {about['module']} ({about['module_kind']})" if about.get("module") else ""
    step = f"step {int(fact.get('windows') or 0) + 1:,}"
    if about["op"] == "given":
        first = f"{step}: {about['count']:,} of {about['numel']:,} numbers of {_role(origin)} were not finite when first used{module}"
    else:
        what = f"the backward pass of {origin.node}" if origin.backward else origin.base
        first = f"{step}: {what}{module} made {about['count']:,} of {about['numel']:,} numbers {WORDS[about['bad']]}, the first that were"
    lines = [first]
    for operand in about.get("inputs") or []:
        lines.append(f"operand: {_operand(operand)}")
    if about.get("op") != "given":
        lines.append(f"result: {about['dtype']}{_shape(about['shape'])}")
    lines += _way(origin)
    lines.append(_how(fact))
    return lines


def _operand(operand: dict[str, Any]) -> str:
    text = f"{operand['dtype']}{_shape(operand['shape'])}"
    if "least" in operand:
        whole = " of whole numbers" if operand.get("whole") and operand["least"] < operand["most"] else ""
        text += f"{whole} from {number(operand['least'])} to {number(operand['most'])}"
        text += f", {operand['zeros']:,} zeros" if operand.get("zeros") else ""
    text += f", {operand['nan']:,} NaN" if operand.get("nan") else ""
    return text + (f", {operand['inf']:,} infinite" if operand.get("inf") else "")


def _shape(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _role(origin: Origin) -> str:
    kind, name = origin.role.get("kind", "data"), origin.role.get("name", "")
    return {"data": "the data", "gradient": f"the gradient of {name}"}.get(kind, f"{kind} {name}".strip())


def _way(origin: Origin) -> list[str]:
    """From the origin to the loss, by the lines that the bad numbers passed."""
    steps = []
    for op, _, row, _, phase in origin.about.get("chain") or []:
        at = place(row)
        name = str(op).removeprefix("aten.").split(".")[0]
        steps.append(f"{'backward of ' if phase == 'backward' else ''}line {at.line}" if at else name)
    kept = [step for index, step in enumerate(steps) if index == 0 or step != steps[index - 1]]
    if len(kept) > 6:
        kept = [*kept[:3], "…", *kept[-2:]]
    sink = {"loss": "the loss", "gradient": "the gradients", "value": str(origin.fact.get("name") or "the value")}
    end = sink.get(str(origin.fact.get("sink")), "the loss")
    return [f"way: {' → '.join([*kept, end])}"] if kept else []


def _how(fact: Fact) -> str:
    if fact.get("how") == "live":
        return "found by replaying the recorded call of the model at that step"
    return f"found by running the program again in a sandbox ({fact.get('took', '?')} s)"
