"""The chart of one process: the bounded state that its facts are reduced to, and all that a rule may read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainsleuth.case.curve import Curve
from trainsleuth.case.entries import (
    Fork,
    HalfParameter,
    Loader,
    LossCalls,
    Model,
    Optimizer,
    Parameter,
    Place,
    Scheduler,
    keep,
    place,
)
from trainsleuth.case.reading import Fact


@dataclass
class ProcessChart:
    """Everything known of one process. Rules read it and change nothing."""

    process: Fact = field(default_factory=dict)
    environment: Fact = field(default_factory=dict)
    parameters: dict[int, Parameter] = field(default_factory=dict)
    optimizers: dict[str, Optimizer] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    losses: dict[Place, Curve] = field(default_factory=dict)
    loss_calls: dict[tuple[str, Place | None], LossCalls] = field(default_factory=dict)
    held_out: dict[tuple[str, Place | None], LossCalls] = field(default_factory=dict)  # the same of validations
    losses_without_grad: list[Fact] = field(default_factory=list)
    loaders: dict[str, Loader] = field(default_factory=dict)
    schedulers: dict[str, Scheduler] = field(default_factory=dict)
    scalers: list[Fact] = field(default_factory=list)
    scalers_off: list[Fact] = field(default_factory=list)  # made, and switched off
    scales: list[tuple[int, float]] = field(default_factory=list)  # window, and the scale in it
    skips: list[Fact] = field(default_factory=list)
    clips: list[Fact] = field(default_factory=list)  # of gradients that were still scaled
    scaled_steps: list[Fact] = field(default_factory=list)  # steps with gradients that no scaler has unscaled
    scaler_steps: list[Fact] = field(default_factory=list)  # steps that a scaler makes, and whether the loss was scaled
    half_gradients: list[Fact] = field(default_factory=list)  # backwards in which gradients of 16 bit were looked at
    half_parameters: dict[int, HalfParameter] = field(default_factory=dict)
    half_losses: list[Fact] = field(default_factory=list)  # losses of 16 bit that were back-propagated
    autocast_backwards: list[Fact] = field(default_factory=list)
    metrics: dict[str, Curve] = field(default_factory=dict)
    metric_places: dict[str, Place | None] = field(default_factory=dict)
    weights_loaded: list[Fact] = field(default_factory=list)
    samples_rewritten: list[Fact] = field(default_factory=list)  # by being read
    masked: list[Fact] = field(default_factory=list)  # padding masks, with what they keep and hide
    loaded_itself: list[Fact] = field(default_factory=list)  # a state dict that still was the live weights
    deep: list[Fact] = field(default_factory=list)
    seeds: list[Fact] = field(default_factory=list)
    probes_off: list[Fact] = field(default_factory=list)
    knobs: list[Fact] = field(default_factory=list)
    crash: Fact | None = None
    quit: Fact | None = None  # it called sys.exit with a number at hand that is not finite
    compiled: Place | None = None
    uses_autograd_grad: bool = False
    steps_withheld: dict[str, Fact] = field(default_factory=dict)  # by optimizer: those that Accelerate withheld, as counted last
    unstepped: dict[str, Fact] = field(default_factory=dict)  # of an optimizer that has not stepped: whether its weights move
    weights_files: list[Fact] = field(default_factory=list)
    threads: list[tuple[int, Place | None]] = field(default_factory=list)  # each number that torch was told to use
    forks: list[Fork] = field(default_factory=list)
    collective_places: dict[int, tuple[str, Place | None]] = field(default_factory=dict)  # number to name and line
    collectives: Fact = field(default_factory=dict)  # how many were entered, by place, and how long they took
    collective_history: list[tuple[int, int]] = field(default_factory=list)  # entered, windows at that time
    ddp: list[Fact] = field(default_factory=list)
    switched: list[Fact] = field(default_factory=list)  # lines that set `requires_grad` on a module, which means nothing to torch
    by_hand: list[Fact] = field(default_factory=list)  # without an optimizer: tensors that the program changes itself, and their gradients
    looks: dict[int, dict[tuple[str, int], tuple[float, float]]] = field(default_factory=dict)  # window: parameter: gradient, weight
    chance: Fact = field(default_factory=dict)  # where random numbers came from before anybody seeded them
    bad_between: tuple[int, int] | None = None  # the windows between which the loss was not finite for the first time
    bad_backward: int = 0  # by this backward a loss was not finite for the first time
    examined: list[Fact] = field(default_factory=list)
    bad_weights: list[Fact] = field(default_factory=list)
    end_marks: list[Fact] = field(default_factory=list)  # rows of a language model's batches that end with the end of a text
    drops_in_eval: list[Fact] = field(default_factory=list)  # calls of functional.dropout that drop in models in eval mode
    norms_as_built: dict[str, list[str]] = field(default_factory=dict)  # by model: in eval mode, with statistics of no data
    norms_looked_at: dict[str, int] = field(default_factory=dict)  # by model: the windows that had been made then
    halved: list[Place] = field(default_factory=list)  # lines that made weights 16 bit
    functions: list[Fact] = field(default_factory=list)  # autograd Functions that the program defines itself
    checkpoint_random: list[Fact] = field(default_factory=list)
    silent_changes: list[Fact] = field(default_factory=list)  # tensors that changed between forward and backward, version unchanged
    trained_from: float | None = None  # time of the first fact about a loss
    latest: float = 0.0  # time of the last fact
    log_back: dict[tuple[str, str], Fact] = field(default_factory=dict)  # logger and name: the latest point below the highest step
    log_stepless: dict[tuple[str, str], Fact] = field(default_factory=dict)
    log_lost: list[Fact] = field(default_factory=list)  # points that a logger threw away
    log_lost_count: int = 0
    log_filter: Fact | None = None
    writers: dict[str, tuple[Fact, Fact]] = field(default_factory=dict)  # folder: the first fact about its writer, and the last
    two_writers: dict[str, Fact] = field(default_factory=dict)
    interrupted: bool = False
    ended: bool = False
    stopped: bool = False
    params_facts: int = 0
    bad_parameters: list[str] = field(default_factory=list)  # their gradient or weight was seen not to be finite
    _losses_written_at: int = 0
    _looked_at: int = 0
    window_times: list[tuple[int, float]] = field(default_factory=list)  # windows of an optimizer so far, when that was written

    def absorb(self, fact: Fact) -> None:
        """Reduce one fact; one that is not understood, or not whole, changes nothing."""
        handler = _HANDLERS.get(fact["k"])
        self.latest = max(self.latest, fact.get("t") or 0.0) if fact["k"] != "examined" else self.latest
        if handler is not None:
            try:
                handler(self, fact)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError):
                keep(self.probes_off, {"k": "probe_off", "probe": f"fact {fact['k']}", "why": "a fact was not whole"}, 64)

    # -- what rules ask often --------------------------------------------------------------------------------------

    @property
    def windows(self) -> int:
        return sum(optimizer.windows for optimizer in self.optimizers.values())

    @property
    def backwards(self) -> int:
        return sum(curve.count for curve in self.losses.values())

    @property
    def trains(self) -> bool:
        return self.backwards > 0 or self.windows > 0 or any(optimizer.backwards for optimizer in self.optimizers.values())

    def main_optimizer(self) -> Optimizer | None:
        """The optimizer with the most windows."""
        return max(self.optimizers.values(), key=lambda o: (o.windows, o.backwards), default=None)

    def main_loss(self) -> tuple[Place, Curve] | None:
        """The loss that was back-propagated most often."""
        return max(self.losses.items(), key=lambda item: item[1].count, default=None)

    def main_loss_call(self) -> LossCalls | None:
        return max(self.loss_calls.values(), key=lambda calls: calls.seen, default=None)

    def owned(self) -> set[int]:
        return {number for optimizer in self.optimizers.values() for number in optimizer.parameters}

    def called_parameters(self) -> list[Parameter]:
        """Parameters of models that were called with gradients on."""
        numbers = dict.fromkeys(n for model in self.models.values() if any(grad for _, grad, _ in model.calls) for n in model.parameters)
        return [self.parameters[n] for n in numbers if n in self.parameters]

    # -- one method per kind of fact -------------------------------------------------------------------------------

    def _process(self, fact: Fact) -> None:
        self.process = fact

    def _rank(self, fact: Fact) -> None:
        """What its process group says: who is started by `spawn` has nothing in its environment that says so."""
        self.process = {**self.process, "rank": int(fact["rank"]), "world": int(fact["world"])}

    def _threads(self, fact: Fact) -> None:
        keep(self.threads, (int(fact["count"]), place(fact["at"])), 16)

    def _fork(self, fact: Fact) -> None:
        keep(self.forks, Fork(place(fact["at"]), fact["python_threads"], fact["native_threads"], fact["libraries"]), 64)

    def _collectives(self, fact: Fact) -> None:
        self.collectives = fact
        keep(self.collective_history, (int(fact["entered"]), int(fact["windows"])), 64)

    def _collective(self, fact: Fact) -> None:
        self.collective_places[fact["number"]] = (fact["name"], place(fact["at"]))

    def _ddp(self, fact: Fact) -> None:
        keep(self.ddp, fact, 16)

    def _module_switched(self, fact: Fact) -> None:
        keep(self.switched, fact, 64)

    def _by_hand(self, fact: Fact) -> None:
        keep(self.by_hand, fact, 16)

    def _environment(self, fact: Fact) -> None:
        self.environment = fact

    def _parameter(self, number: int) -> Parameter:
        known = self.parameters.get(number)
        if known is None:
            known = self.parameters[number] = Parameter(number)
        return known

    def _parameter_rows(self, rows: list[list[Any]], model: str | None) -> list[int]:
        numbers = []
        for number, name, shape, dtype, trainable, frozen_at, *put_in in rows:
            known = self._parameter(number)
            whole = self.models.get(known.model or "")
            if model is not None and (whole is None or whole.id == model or len(rows) >= len(whole.parameters)):
                known.name, known.model = name, model
            elif known.name == "?":
                known.name = name
            if model is not None:
                known.names[model] = name
            known.shape, known.dtype = tuple(shape), dtype
            known.trainable = trainable
            known.ever_trainable = known.ever_trainable or trainable
            known.frozen_at = place(frozen_at) or known.frozen_at
            if put_in and put_in[0] is not None:
                known.put_in = (place(put_in[0][0]), put_in[0][1])
            numbers.append(number)
        return numbers

    def _optimizer(self, fact: Fact) -> None:
        self._parameter_rows(fact["params"], None)
        numbers = [number for group in fact["groups"] for number in group["params"]]
        optimizer = Optimizer(
            fact["id"], fact["kind"], place(fact["at"]), fact["t"], fact["groups"], numbers,
            fact.get("windows", 0), fact.get("backwards", 0), asked_at=place(fact.get("by")),
        )  # fmt: skip
        self.optimizers[optimizer.id] = optimizer
        for number in numbers:
            self._parameter(number).owners.add(optimizer.id)

    def _model(self, fact: Fact) -> None:
        numbers = self._parameter_rows(fact["params"], fact["id"])
        modules = {path: kind for path, kind in fact["modules"]}
        known = self.models.get(fact["id"])
        if known is None:
            known = self.models[fact["id"]] = Model(fact["id"], fact["kind"], place(fact["at"]), numbers, modules, [], {})
        known.parameters, known.modules, known.plain, known.holder = numbers, modules, fact.get("plain", []), fact.get("holder", "")
        creation = {path: (place(at), made) for path, at, made in fact.get("made", [])}
        known.made = {path: at for path, (at, _) in creation.items() if at is not None}
        for path, kind, _, at, hidden in fact.get("plain", []):
            for number in hidden:
                parameter = self._parameter(number)
                parameter.name, parameter.made_at = f"{path} ({kind})", place(at)
        for number in numbers:
            parameter = self.parameters[number]
            at, made = creation.get(parameter.names[known.id].rpartition(".")[0], (None, 0.0))
            if at is not None or parameter.model == known.id:
                parameter.made_at, parameter.made = at, made

    def _windows(self, fact: Fact) -> None:
        optimizer = self.optimizers[fact["opt"]]
        optimizer.windows = max(optimizer.windows, fact["to"])
        if optimizer is self.main_optimizer():
            keep(self.window_times, (int(fact["to"]), float(fact["t"])))
        for key in ("watched", "backwards", "delivered", "discarded", "stale", "skipped", "surgery"):
            setattr(optimizer, key, getattr(optimizer, key) + fact[key])
        optimizer.left_looks += fact.get("left_looks", 0)
        for number, looks in fact.get("left", []):
            self._parameter(number).left += looks
        keep(
            optimizer.recent,
            {key: fact[key] for key in ("to", "n", "watched", "delivered", "discarded", "stale", "skipped", "surgery")},
        )
        optimizer.step_at = place(fact["step_at"]) or optimizer.step_at
        optimizer.cleared_at = place(fact["cleared_at"]) or optimizer.cleared_at
        rates = fact["rates"] or []
        if rates:
            least, most, last = max(rates, key=lambda rate: rate[1])
            optimizer.rates.add(fact["to"], fact["n"], (least + most) / 2, least, most, last)
            optimizer.rates_by_group = rates

    def _loss(self, fact: Fact) -> None:
        at = place(fact["at"])
        if at is not None:
            curve = self.losses.get(at)
            if curve is None:
                curve = self.losses[at] = Curve(began=max(0, int(fact.get("window", 0)) - fact["n"] - fact["not_finite"]))
            self.trained_from = self.trained_from or fact["t"]
            if fact["not_finite"] and self.bad_between is None:
                self.bad_between = (self._losses_written_at, int(fact.get("window", 0)) + 1)
                self.bad_backward = int(fact["to"])
            self._losses_written_at = int(fact.get("window", 0))
            curve.add(fact["to"], fact["n"], fact["mean"], fact["least"], fact["most"], fact["last"], fact["not_finite"],
                      fact.get("values"))  # fmt: skip

    def _params(self, fact: Fact) -> None:
        self.params_facts += 1
        opt, parameters = fact["opt"], self.parameters
        for number, trainable, owned, has_gradient, gradient, weight, update, changed in fact["rows"]:  # a thousand ranks come through here
            known = parameters.get(number) or self._parameter(number)
            if trainable:
                known.trainable = known.ever_trainable = True
            else:
                known.trainable = False
            if owned and opt not in known.owners:
                known.owners.add(opt)
            if not has_gradient:
                known.without_gradient += 1
            elif gradient == 0:
                known.zero_gradient += 1
            else:
                known.with_gradient += 1
            if changed or update:
                known.moved += 1
            size = (gradient or 0.0) + (weight or 0.0)
            if size - size != 0.0 and _broke(known, gradient, weight):
                keep(self.bad_parameters, known.name, 16)
                self.bad_between = self.bad_between or (self._looked_at, int(fact["window"]) + 1)
            known.gradient, known.weight, known.update, known.changed_share = gradient, weight, update, changed
            if gradient is not None and len(known.first_gradients) < 8:
                known.first_gradients.append(gradient)
        self._looked_at = int(fact["window"])
        if (self.process.get("world") or 1) > 1:
            self._remember_look(fact)

    def _remember_look(self, fact: Fact) -> None:
        """Of a few windows, the first and the latest: each parameter's gradient and weight, to hold beside those of other ranks."""
        opt = fact["opt"]
        self.looks.setdefault(int(fact["window"]), {}).update({
            (opt, row[0]): (row[4], row[5]) for row in fact["rows"][:500] if row[4] is not None and row[5] is not None
        })  # fmt: skip
        if len(self.looks) > 16:
            del self.looks[sorted(self.looks)[4]]

    def _calls(self, fact: Fact) -> None:
        model = self.models.get(fact["model"])
        if model is not None:
            setting = (fact["training"], fact["grad"], fact["loader"])
            if not fact["grad"]:
                model.windows_without_grad += fact["windows"]
            elif fact["windows"]:
                keep(model.recent, (fact["training"], fact["windows"]), 64)
            model.calls[setting] = model.calls.get(setting, 0) + fact["n"]
            model.places.setdefault(setting, place(fact["at"]))

    def _mode(self, fact: Fact) -> None:
        model = self.models.get(fact["model"])
        if model is not None:
            key = (fact["training"], fact["grad"])
            model.modes[key] = fact
            model.first_modes.setdefault(key, fact)

    def _loss_targets(self, fact: Fact) -> None:
        calls = self.loss_calls.get((fact["fn"], place(fact["at"])))
        if calls is not None:
            calls.other_targets |= {value for value in (fact["least"], fact["most"]) if isinstance(value, (int, float))}

    def _loss_call(self, fact: Fact) -> None:
        _add_loss_call(self.loss_calls, fact)

    def _held_out(self, fact: Fact) -> None:
        _add_loss_call(self.held_out, fact)

    def _loss_without_grad(self, fact: Fact) -> None:
        keep(self.losses_without_grad, fact, 64)

    def _loader(self, fact: Fact) -> None:
        self.loaders[fact["id"]] = Loader(fact["id"], place(fact["at"]), fact)

    def _loader_pass(self, fact: Fact) -> None:
        keep(self.loaders[fact["id"]].passes, fact, 64)

    def _loader_batches(self, fact: Fact) -> None:
        keep(self.loaders[fact["id"]].compared, [int(place) for place in fact["equal_to"]], 4)

    def _scheduler(self, fact: Fact) -> None:
        self.schedulers[fact["id"]] = Scheduler(fact["id"], fact["kind"], place(fact["at"]), fact["opt"], fact)

    def _scheduler_step(self, fact: Fact) -> None:
        keep(self.schedulers[fact["id"]].steps, fact, 64)

    def _scheduler_loaded(self, fact: Fact) -> None:
        if fact["id"] in self.schedulers:
            self.schedulers[fact["id"]].loaded = True

    def _scaler(self, fact: Fact) -> None:
        keep(self.scalers, fact, 16)

    def _scaler_off(self, fact: Fact) -> None:
        keep(self.scalers_off, fact, 16)

    def _scale(self, fact: Fact) -> None:
        if isinstance(fact["scale"], (int, float)):
            keep(self.scales, (int(fact["window"]), float(fact["scale"])))

    def _clip(self, fact: Fact) -> None:
        keep(self.clips, fact, 64)

    def _scaled_step(self, fact: Fact) -> None:
        keep(self.scaled_steps, fact, 64)

    def _scaler_step(self, fact: Fact) -> None:
        keep(self.scaler_steps, fact, 64)

    def _half_gradients(self, fact: Fact) -> None:
        keep(self.half_gradients, fact, 64)

    def _half_params(self, fact: Fact) -> None:
        for number, dtype, state, group, changed, median, lost, not_finite in fact["rows"]:
            known = self.half_parameters.get(number)
            self.half_parameters[number] = HalfParameter(
                number, fact["opt"], group, dtype, state, fact["window"], known.looks + 1 if known else 1, changed, median,
                max(lost or 0.0, known.squares_lost if known else 0.0), not_finite,
            )  # fmt: skip

    def _half_loss(self, fact: Fact) -> None:
        keep(self.half_losses, fact, 16)

    def _autocast_backward(self, fact: Fact) -> None:
        keep(self.autocast_backwards, fact, 16)

    def _step_skipped(self, fact: Fact) -> None:
        keep(self.skips, fact, 64)

    def _metric(self, fact: Fact) -> None:
        name = fact["name"]
        if name not in self.metrics and len(self.metrics) >= 200:
            return
        curve = self.metrics.get(name) or self.metrics.setdefault(name, Curve())
        least, most = fact["least"], fact["most"]
        bad = fact.get("not_finite", 0)
        curve.add(curve.count + fact["n"] + bad, fact["n"], fact["mean"], least, most, fact["last"], bad)
        self.metric_places.setdefault(name, place(fact["at"]))

    def _log_back(self, fact: Fact) -> None:
        if len(self.log_back) < 200 or (fact["logger"], fact["name"]) in self.log_back:
            first = self.log_back.get((fact["logger"], fact["name"]), fact)
            self.log_back[fact["logger"], fact["name"]] = {**first, "count": int(fact["count"])}

    def _log_stepless(self, fact: Fact) -> None:
        if len(self.log_stepless) < 200:
            self.log_stepless[fact["logger"], fact["name"]] = fact

    def _dropped(self, fact: Fact) -> None:
        self.log_lost_count = max(self.log_lost_count, int(fact["lost"]))
        keep(self.log_lost, fact, 2000)

    def _log_filter(self, fact: Fact) -> None:
        self.log_filter = fact

    def _writer(self, fact: Fact) -> None:
        if len(self.writers) < 200 or fact["folder"] in self.writers:
            self.writers[fact["folder"]] = (self.writers.get(fact["folder"], (fact, fact))[0], fact)

    def _two_writers(self, fact: Fact) -> None:
        if len(self.two_writers) < 64:
            self.two_writers[fact["folder"]] = fact

    def _weights_loaded(self, fact: Fact) -> None:
        keep(self.weights_loaded, fact, 64)
        for number in fact["params"]:
            self._parameter(number).loaded = True

    def _masked(self, fact: Fact) -> None:
        keep(self.masked, fact, 24)

    def _bad_at_the_end(self, fact: Fact) -> None:
        """Every loss that was back-propagated may have been finite: then the last step broke them, and those after it were passed over."""
        from_the_start = {name for early in self.bad_weights for name, _ in early["rows"]}
        broken = [p for p in map(self._parameter, fact["params"]) if p.owners and not from_the_start & {p.name, *p.names.values()}]
        for parameter in broken:
            keep(self.bad_parameters, parameter.name, 16)
        if not broken:
            return
        self.bad_between = self.bad_between or (max(0, fact["windows"] - 1), fact["windows"] + 1)

    def _sample_rewritten(self, fact: Fact) -> None:
        keep(self.samples_rewritten, fact, 64)

    def _loaded_itself(self, fact: Fact) -> None:
        keep(self.loaded_itself, fact, 64)

    def _optimizer_loaded(self, fact: Fact) -> None:
        self.optimizers[fact["opt"]].loaded.append(fact)

    def _deep(self, fact: Fact) -> None:
        keep(self.deep, fact, 24)

    def _seed(self, fact: Fact) -> None:
        keep(self.seeds, fact, 32)

    def _probe_off(self, fact: Fact) -> None:
        keep(self.probes_off, fact, 64)

    def _knob(self, fact: Fact) -> None:
        keep(self.knobs, fact, 64)

    def _chance(self, fact: Fact) -> None:
        self.chance = fact

    def _end_marks(self, fact: Fact) -> None:
        keep(self.end_marks, fact, 24)

    def _drops_in_eval(self, fact: Fact) -> None:
        keep(self.drops_in_eval, fact, 8)

    def _norms_as_built(self, fact: Fact) -> None:
        self.norms_as_built[fact["model"]] = list(fact["paths"])
        self.norms_looked_at[fact["model"]] = int(fact["windows"])

    def _bad_weights(self, fact: Fact) -> None:
        keep(self.bad_weights, fact, 8)

    def _halved(self, fact: Fact) -> None:
        at = place(fact["at"])
        if at is not None:
            keep(self.halved, at, 8)

    def _silent_change(self, fact: Fact) -> None:
        keep(self.silent_changes, fact, 8)

    def _function(self, fact: Fact) -> None:
        keep(self.functions, fact, 32)

    def _checkpoint_random(self, fact: Fact) -> None:
        keep(self.checkpoint_random, fact, 8)

    def _examined(self, fact: Fact) -> None:
        keep(self.examined, fact, 8)

    def _crash(self, fact: Fact) -> None:
        known = self.crash is not None and bool(self.crash["frames"])
        if not fact.get("native") or not (known or self.ended):  # a forked child writes its fault into its parent's file
            self.crash = fact

    def _quit(self, fact: Fact) -> None:
        self.quit = fact

    def _compiled(self, fact: Fact) -> None:
        self.compiled = place(fact["at"]) or Place("?", 0)

    def _autograd_grad(self, fact: Fact) -> None:
        self.uses_autograd_grad = True

    def _unstepped(self, fact: Fact) -> None:
        self.unstepped[fact["opt"]] = fact

    def _steps_withheld(self, fact: Fact) -> None:
        self.steps_withheld[fact["opt"]] = fact

    def _weights_file(self, fact: Fact) -> None:
        keep(self.weights_files, fact, 16)

    def _interrupted(self, fact: Fact) -> None:
        self.interrupted = True

    def _exit(self, fact: Fact) -> None:
        self.ended = True

    def _stop(self, fact: Fact) -> None:
        self.stopped = True


def _add_loss_call(known: dict[tuple[str, Place | None], LossCalls], fact: Fact) -> None:
    at = place(fact["at"])
    if not (isinstance(fact["numbers"], dict) and isinstance(fact["settings"], dict)):
        raise TypeError("a loss call has numbers and settings by name")
    calls = known.setdefault((fact["fn"], at), LossCalls(fact["fn"], at))
    calls.seen += 1
    keep(calls.samples, fact)


def _broke(known: Parameter, gradient: float | None, weight: float | None) -> bool:
    """A gradient that is NaN, or a weight that was finite when it was looked at last. The norm of a gradient may overflow though the
    gradient does not, and a weight that was bad from the start may be one that nobody uses."""
    if gradient is not None and math.isnan(gradient):
        return True
    return weight is not None and not math.isfinite(weight) and known.weight is not None and math.isfinite(known.weight)


_HANDLERS: dict[str, Callable[[ProcessChart, Fact], None]] = {
    name: getattr(ProcessChart, f"_{name}")
    for name in (
        "process", "rank", "environment", "optimizer", "model", "windows", "loss", "params", "calls", "mode", "loss_call",
        "loss_targets", "loss_without_grad", "held_out", "loader", "loader_pass", "loader_batches", "scheduler", "scheduler_step",
        "scheduler_loaded", "scaler",
        "step_skipped", "metric", "weights_loaded", "loaded_itself", "sample_rewritten", "masked", "bad_at_the_end",
        "optimizer_loaded", "deep", "seed", "probe_off", "knob", "crash",
        "compiled", "autograd_grad", "unstepped", "steps_withheld", "weights_file", "interrupted", "exit", "stop", "threads", "fork", "collectives",
        "collective", "ddp", "module_switched", "by_hand", "chance", "examined", "bad_weights", "norms_as_built", "drops_in_eval", "end_marks",
        "silent_change", "function",
        "halved",
        "checkpoint_random", "quit", "scaler_off", "scale", "clip", "scaled_step", "scaler_step", "half_gradients", "half_params", "half_loss",
        "autocast_backward", "log_back", "log_stepless", "dropped", "log_filter", "writer", "two_writers",
    )
}  # fmt: skip
_HANDLERS["knob_idle"] = _HANDLERS["knob_failed"] = _HANDLERS["knob_acted"] = _HANDLERS["knob"]
