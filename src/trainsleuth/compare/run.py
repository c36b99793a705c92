"""One run as a comparison sees it: what it was given, what it was seen to use, and what came out."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.folder import Case, CaseError, open_case
from trainsleuth.case.run_chart import RunChart
from trainsleuth.compare.options import is_seed, options_of
from trainsleuth.compare.speed import Speed, speed_of
from trainsleuth.rules.arbiter import diagnose
from trainsleuth.trials.measure import learning, learns

Points = tuple[tuple[int, float], ...]
SETTINGS = ("lr", "initial_lr", "momentum", "weight_decay", "betas", "eps", "nesterov", "alpha")
TRIAL = re.compile(r"(.+?)(?::|/trials/)(T\d+)/?$")


@dataclass(frozen=True)
class Run:
    """Everything of one run that can be held beside another."""

    name: str
    folder: Path
    cwd: Path
    command: tuple[str, ...]
    given: dict[str, str]  # options, variables, versions, code: what makes a run differ
    seeds: tuple[str, ...]
    seen: dict[str, str]  # what the run was seen to use: consequences of what it was given
    outcome: str
    findings: tuple[str, ...]
    loss: Points
    metrics: dict[str, Points]
    speed: Speed
    git: str | None = None
    sources: dict[str, Path] = field(default_factory=dict)  # copies of the program's files as they were
    missing: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        return self.loss[-1][0] if self.loss else 0


def read_run(text: str) -> Run:
    """A case, by its folder or name, or one of its trials: `CASE:T3` or the trial's folder."""
    found = TRIAL.fullmatch(text)
    if found is None:
        case = open_case(text)
        return _of_case(case)
    return _of_trial(open_case(found[1]), found[2])


def _of_case(case: Case) -> Run:
    about = case.about
    seconds = about["ended"] - about["started"] if _number(about.get("ended")) and _number(about.get("started")) else None
    return _run(case.name, case.folder, case, {}, about.get("exit", {}).get("kind", "unknown"), seconds)


def _of_trial(case: Case, name: str) -> Run:
    try:
        stored = json.loads((case.trials / f"{name}.json").read_text(encoding="utf-8"))
        label, outcome = str(stored["label"]), dict(stored["outcome"])
    except (OSError, ValueError, KeyError, TypeError):
        raise CaseError(f"{case.folder} has no trial {name} that can be read.") from None
    kind = "hang" if outcome.get("kind") == "hang" else "crash" if outcome.get("kind") == "crash" else "ok"
    return _run(f"{case.name}:{name}", case.trials / name, case, {"trial": label}, kind, outcome.get("seconds"))


def _run(name: str, folder: Path, case: Case, more: dict[str, str], ended: str, seconds: float | None) -> Run:
    chart = RunChart(folder / "facts")
    chart.refresh()
    if not chart.processes:
        raise CaseError(f"{folder} holds no facts: there is nothing to compare.")
    main = max(chart.processes.values(), key=lambda process: (process.windows, process.backwards))
    diagnosis = diagnose(chart)
    loud = tuple(dict.fromkeys(finding.rule for finding in diagnosis.findings if finding.severity != "note"))
    options = options_of(case.command)
    variables = {str(key): str(value) for key, value in main.environment.get("variables", {}).items()}
    given = {
        **{key: value for key, value in {**options, **variables}.items() if not is_seed(key)},
        **_versions(case, main), **_code(case), **more,
    }  # fmt: skip
    seeds = tuple(f"{key} {value}" for key, value in {**options, **variables}.items() if is_seed(key)) or tuple(
        str(fact.get("value")) for fact in main.seeds[:3]
    )
    return Run(
        name=name, folder=folder, cwd=case.cwd, command=tuple(case.command), given=given, seeds=seeds, seen=_seen(chart, main),
        outcome=_outcome(ended, loud, main), findings=loud, loss=_points(main),
        metrics={key: tuple((p.to, p.mean) for p in curve.points) for key, curve in main.metrics.items() if curve.points},
        speed=speed_of(folder / "facts", seconds), git=case.about.get("git"), sources=_copies(case),
        missing=() if case.about.get("sources") else ("the program's files as they were when it ran",),
    )  # fmt: skip


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _versions(case: Case, chart: ProcessChart) -> dict[str, str]:
    found = {"python": case.about.get("python") or chart.process.get("python"), "torch": chart.environment.get("torch"),
             "platform": case.about.get("platform"), "host": chart.process.get("host"), "cores": chart.environment.get("cores")}  # fmt: skip
    return {key: str(value) for key, value in found.items() if value is not None}


def _code(case: Case) -> dict[str, str]:
    """The commit and the files that the command line names, as one thing: a change of code changes both."""
    sources = case.about.get("sources")
    parts = [f"commit {case.about['git']}"] if case.about.get("git") else []
    if isinstance(sources, dict):
        parts += [f"{Path(name).name} {str(digest)[:8]}" for name, digest in sources.items()]
    return {"code": ", ".join(parts)} if parts else {}


def _copies(case: Case) -> dict[str, Path]:
    sources = case.about.get("sources")
    names = sources if isinstance(sources, dict) else {}
    return {
        name: case.folder / "sources" / Path(name).name for name in names if (case.folder / "sources" / Path(name).name).is_file()
    }


def _seen(run: RunChart, chart: ProcessChart) -> dict[str, str]:
    """Settings as the run used them, whatever file or default they came from."""
    found: dict[str, Any] = {}
    optimizer = chart.main_optimizer()
    if optimizer is not None:
        found["optimizer"] = optimizer.kind
        settings = optimizer.groups[0].get("settings", {}) if optimizer.groups else {}
        found |= {f"optimizer {key}": settings[key] for key in SETTINGS if settings.get(key) is not None}
        found["micro-batches per step"] = round(optimizer.micro_batches) if optimizer.micro_batches else None
    model = max(chart.models.values(), key=lambda known: len(known.parameters), default=None)
    if model is not None:
        held = [chart.parameters[n] for n in model.parameters if n in chart.parameters]
        found["model"] = model.kind
        found["parameters"] = f"{sum(p.count for p in held):,}"
        found["trainable parameters"] = f"{sum(p.count for p in held if p.ever_trainable):,}"
        found["dtype"] = ", ".join(sorted({p.dtype for p in held}))
    loader = max(chart.loaders.values(), key=lambda known: sum(p.get("backwards", 0) for p in known.passes), default=None)
    if loader is not None:
        found |= {
            f"loader {key}": loader.about.get(key)
            for key in ("dataset", "length", "batch_size", "sampler", "workers", "drop_last")
        }
    for scheduler in list(chart.schedulers.values())[:1]:
        found["scheduler"] = scheduler.kind
        found |= {f"scheduler {key}": value for key, value in list(scheduler.about.get("settings", {}).items())[:8]}
    found["threads"] = chart.environment.get("threads")
    found["processes that train"] = len(run.training())
    found["gradient scaler"] = "yes" if chart.scalers else "no"
    found["compiled"] = "yes" if chart.compiled is not None else "no"
    return {key: str(value) for key, value in found.items() if value is not None}


def _points(chart: ProcessChart) -> Points:
    main = chart.main_loss()
    return tuple((point.to, point.mean) for point in main[1].points) if main is not None else ()


def _outcome(ended: str, loud: tuple[str, ...], chart: ProcessChart) -> str:
    """One word for how it went."""
    main = chart.main_loss()
    if ended == "hang" or any(rule.startswith("hang/") for rule in loud):
        return "stood still"
    if ended in ("crash", "killed"):
        return "crashed" if ended == "crash" else "killed"
    if main is None:
        return "did not train"
    if not math.isfinite(main[1].last) or any(rule.startswith("nan/") for rule in loud):
        return "NaN"
    measured = learning(_points(chart))
    if measured is None:
        return "too short to tell"
    return "learns" if learns(measured) else "does not learn"
