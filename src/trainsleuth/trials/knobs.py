"""The knobs that trials can turn, what each changes, and which suspected causes it settles.

The actuators run inside the program: `_trainsleuth_inside/knobs/`, one file each. A knob can share another one's actuator and give it
options. Users name their own: an environment variable, or an override on the command line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trainsleuth.trials.trial import Setting

HANGS = ("hang/backward", "hang/standstill")
MEANT_AXIS = re.compile(r"(?:the classes are|its weights are summed over) axis (\d+)")
STALLS = ("stall/flat-loss", "stall/uniform-predictions")


class Pointed(Protocol):
    """A line of a finding."""

    file: str
    line: int
    code: str
    note: str


class KnobError(Exception):
    """What is wrong with a knob that the user named, in a sentence."""


@dataclass(frozen=True)
class Knob:
    """One thing that a trial can change.

    It settles the causes whose mechanism it removes; it eases symptoms that it may make go away without touching what makes them.
    """

    name: str
    label: str
    changes: str
    mechanism: str
    settles: tuple[str, ...] = ()
    eases: tuple[str, ...] = ()
    actuator: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    argument: str = ""  # the option that `name:value` sets

    def options(self, where: Sequence[Pointed]) -> dict[str, Any]:
        """What the actuator must know of the finding."""
        if self.name == "unfreeze":  # without a line that freezes, whatever the user's own files freeze
            return {"at": [[p.file, p.line] for p in where if "requires_grad" in p.code or "freez" in p.note]}
        if self.name == "clear-only-after-step":
            clearing = [place for place in where if "zero_grad" in place.code or "clears" in place.note]
            by_hand = not any("zero_grad" in place.code for place in clearing)
            meant = where if by_hand else clearing  # a framework's closure clears wherever the program calls it
            return {"at": [[place.file, place.line] for place in meant], "by_hand": by_hand}
        if self.name == "operation-in-32-bits":
            return {"at": [[place.file, place.line] for place in where[:1]], "half": True}
        if self.name == "operation-guarded":
            return {"at": [[place.file, place.line] for place in where[:1]]}
        if self.name == "softmax-over-classes":
            axes = [(place, found[1]) for place in where if (found := MEANT_AXIS.search(place.note))]
            return {"at": [[place.file, place.line] for place, _ in axes[:1]], "axis": int(axes[0][1])} if axes else {}
        if self.name == "ranks-do-not-wait":
            return {"at": [[place.file, place.line] for place in where], "in_backward": any("backward" in place.note for place in where)}
        if self.name == "graph-kept":
            return {"at": [[place.file, place.line] for place in where if not place.note.startswith("made here")]}
        if self.name in ("mask-inverted", "state-copied", "reparameterised", "own-share", "same-shape-loss", "backward-by-autograd"):
            return {"at": [[place.file, place.line] for place in where]}
        return dict(self.given)

    def setting(self, where: Sequence[Pointed] = ()) -> Setting:
        return Setting(self.actuator or self.name, self.options(where))


_ALL = (
    # -- who is trained, and by what -----------------------------------------------------------------------------------
    Knob("unfreeze", "not frozen", "the named lines no longer set requires_grad to False",
         "share of the weights that are trainable and move", ("stall/params-frozen",), STALLS),
    Knob("optimizer-owns-all", "all owned", "parameters that get a gradient and have no owner are given to the optimizer",
         "weights that get a gradient and do not move", ("stall/params-not-in-optimizer", "stall/unregistered-modules"), STALLS),
    Knob("clear-only-after-step", "kept for step", "gradients that no step has used yet are not cleared",
         "micro-batches thrown away per window", ("stall/accumulated-gradients-discarded",)),
    Knob("clear-every-step", "cleared", "gradients are cleared right after each step",
         "windows that begin with old gradients", ("stall/gradients-never-cleared",)),
    Knob("step-every-window", "stepped", "after each backward the optimizers that nobody steps make a step",
         "steps per backward", ("stall/optimizer-never-steps",)),
    Knob("ends-learnt", "ends count", "the label of an end-of-text token at the end of a row counts",
         "ends of texts that are left out of the loss", ("data/end-never-learnt",)),
    Knob("schedule-holds", "rate held", "a schedule that is stepped beyond its end keeps its last rate",
         "steps of a schedule behind its end", ("schedule/ends-before-the-run",)),
    Knob("batch-first", "batch first", "attention and recurrent modules take the first axis for the samples, where it is as long as the batch",
         "modules that take the samples of a batch for steps", ("stall/batch-taken-for-steps",)),
    Knob("no-step-withheld", "none withheld", "Accelerate lets an optimizer step whenever the program says so",
         "steps that are asked for and not made", ("stall/steps-withheld",)),
    Knob("graph-kept", "graph kept", "the named lines no longer cut the graph (detach, data, no_grad)",
         "layers that run in training and get no gradient", ("stall/no-gradient",)),
    Knob("reparameterised", "reparameterised", "the named lines draw by rsample(), so that gradients pass",
         "samples that are drawn without gradients", ("stall/sample-without-gradient",)),
    Knob("train-mode", "train mode", "modules are in train mode during each forward that records gradients",
         "mode-sensitive modules in eval mode during training", ("mode/eval-during-training",), STALLS),
    Knob("eval-mode", "eval mode", "modules are in eval mode during each forward without gradients",
         "forwards without gradients in train mode", ("mode/train-during-validation",)),
    Knob("accumulate-as-one-batch", "as one batch", "gradients of several backwards are averaged before the step",
         "size of the accumulated gradient"),
    Knob("hidden-state-detached", "state detached", "a recurrent layer does not look back beyond the present batch",
         "how far back the graph reaches", ("autograd/graph-freed",)),
    # -- the loss and its data -----------------------------------------------------------------------------------------
    Knob("mask-inverted", "other way", "padding masks of attention keep what they hid, and hide what they kept",
         "masks that keep the padding only", ("stall/mask-inverted",)),
    Knob("softmax-dropped", "logits", "a loss that wants logits gets logits, not probabilities",
         "a softmax or sigmoid right before the loss", ("stall/double-softmax", "stall/probabilities-not-logs")),
    Knob("softmax-over-classes", "over classes", "a softmax over the batch runs over the classes",
         "the axis over which probabilities sum to one", ("stall/wrong-softmax-axis",)),
    Knob("same-shape-loss", "same shape", "the target takes the shape of the prediction",
         "differences per sample", ("stall/shape-broadcast",)),
    Knob("bad-labels-dropped", "labels in range", "labels that the loss cannot use are left out",
         "labels that do not exist", ("data/labels-out-of-range",)),
    Knob("labels-minus-1", "labels - 1", "class labels are counted from zero",
         "the smallest and the largest label", ("data/labels-off-by-one", "data/labels-out-of-range")),
    Knob("targets-fit", "targets fit", "targets of a CTC loss have no blank in them and no more symbols than their inputs have frames for",
         "targets that CTC cannot read", ("stall/metric-does-not-follow-loss",)),
    Knob("next-token", "next token", "each answer of a language model is compared with the token that comes next",
         "distance between tokens and targets", ("stall/inputs-and-targets-misaligned",)),
    Knob("shuffle", "shuffled", "loaders that go through their data in order shuffle",
         "classes per batch", ("data/not-shuffled",)),
    Knob("samples-kept", "samples kept", "what a data set keeps of a sample is the same after the sample was read",
         "samples that change when they are read", ("data/samples-rewritten",)),
    Knob("normalise-inputs", "normalised", "what a model is called with has mean 0 and spread 1",
         "size of what the first layer receives", ("data/not-normalised",), (*STALLS, "nan/loss-not-finite")),
    Knob("inputs-turned-round", "inputs swapped", "each sample gets the input of another one, while its target stays",
         "the dependence of the output on the input", ("stall/input-ignored",)),
    Knob("overfit-one-batch", "one batch", "every training step sees the first batch again",
         "the pairing of inputs and targets", ("stall/inputs-and-targets-misaligned",)),
    Knob("bad-sample-dropped", "finite inputs", "numbers that are not finite do not enter the model",
         "inputs that are not finite", ("nan/bad-sample",), ("nan/loss-not-finite",)),
    Knob("cold-cache", "cold cache", "a cache that earlier runs have left is not there (`cold-cache:data/cache`, a folder or a file)",
         "entries that were made by another program or configuration", argument="paths"),
    Knob("finite-weights", "finite weights", "weights that are not finite before the first step are replaced by the mean of the others",
         "weights that are not finite from the start", ("nan/bad-weights",)),
    Knob("state-copied", "copies kept", "the state dict that the named lines ask for holds copies",
         "a kept state that still is the live weights", ("checkpoint/restores-nothing",)),
    Knob("names-matched", "names fit", "weights whose names differ by a prefix are loaded under the module's names",
         "tensors of a file that the module does not know", ("checkpoint/weights-not-loaded",)),
    Knob("operation-guarded", "guarded", "the operation that made the first bad number gets operands that it bears",
         "the first number that is not finite",
         ("nan/log-of-zero", "nan/sqrt-at-zero", "nan/zero-division", "nan/exp-overflow", "nan/softmax-of-empty-row",
          "nan/variance-of-one-sample", "nan/where-trap", "nan/ctc-infinite", "nan/first-operation")),
    Knob("operation-in-32-bits", "in 32 bits", "the operation that overflowed is computed in 32 bits",
         "the first number that is not finite", ("nan/half-overflow",), actuator="operation-guarded"),
    Knob("saved-tensors-copied", "copies saved", "autograd keeps a copy of each tensor that it saves for backward",
         "tensors that are changed before backward uses them",
         ("autograd/modified-in-place", "autograd/step-between-backwards", "autograd/silently-modified")),
    Knob("backward-by-autograd", "derived", "autograd derives the backward of the named Functions from their forward",
         "a backward that was written by hand", ("autograd/custom-backward-wrong",)),
    Knob("leaky", "leaky", "a rectifier lets a tenth of what is negative through",
         "units that are zero for every sample", ("stall/dead-units",)),
    Knob("relu-inside", "ReLU inside", "hidden layers use ReLU, and start from weights that suit it",
         "how much of the gradient reaches the first layers", ("stall/vanishing-gradient",)),
    Knob("dropout-off", "no dropout", "nothing is dropped", "share of the activations that is dropped"),
    # -- the size of a step --------------------------------------------------------------------------------------------
    Knob("constant-learning-rate", "full rate", "no step has less than the full learning rate (no warm-up, no decay, no zero)",
         "learning rate of every step",
         ("stall/learning-rate-zero", "schedule/warmup-never-ends", "schedule/never-stepped", "schedule/rate-times-itself",
          "schedule/decays-to-zero-early"), STALLS),
    Knob("learning-rate", "rate × 10", "every learning rate is multiplied by a factor (`learning-rate:0.1`)",
         "size of a step", (), STALLS, argument="factor"),
    Knob("learning-rate-hundredfold", "rate × 100", "every learning rate is multiplied by 100", "size of a step",
         ("stall/learning-rate-too-small",), (), "learning-rate", {"factor": 100.0}),
    Knob("learning-rate-thousandfold", "rate × 1000", "every learning rate is multiplied by 1000", "size of a step",
         ("stall/learning-rate-too-small",), (), "learning-rate", {"factor": 1000.0}),
    Knob("learning-rate-tenth", "rate / 10", "every learning rate is a tenth", "size of a step", ("nan/diverged", "stall/dead-units"),
         (*STALLS, "nan/loss-not-finite"), "learning-rate", {"factor": 0.1}),
    Knob("learning-rate-held", "first rate", "no step has a higher learning rate than the first one", "learning rate of every step",
         ("nan/diverged",), (), "learning-rate", {"factor": 1.0, "hold": True}),
    Knob("learning-rate-hundredth", "rate / 100", "every learning rate is a hundredth", "size of a step", ("nan/diverged",), (),
         "learning-rate", {"factor": 0.01}),
    Knob("warmup-off", "no warm-up", "the same as constant-learning-rate", "learning rate of the first steps",
         actuator="constant-learning-rate"),
    Knob("clip", "clipped at 1", "the norm of the gradients is limited before each step (`clip:5`; `clip:0` takes a limit away)",
         "norm of the gradient that a step uses", (), ("nan/loss-not-finite",), argument="norm"),
    Knob("batch-size", "half the batch", "batches of DataLoaders are larger or smaller by a factor (`batch-size:2`)",
         "samples per batch", argument="factor"),
    # -- precision and kernels -----------------------------------------------------------------------------------------
    Knob("precision-32", "32 bit", "autocast and scalers are off, everything computes in 32 bit",
         "dtype in which layers compute", ("stall/scaler-skips-steps", "precision/scale-collapsed", "precision/norm-weights-frozen"),
         ("nan/loss-not-finite",)),
    Knob("keep-32", "kept in 32 bit", "the named modules alone compute in 32 bit (`keep-32:head.loss,norm`)",
         "dtype in which these modules compute", argument="modules"),
    Knob("precision-bf16", "bfloat16", "models are called under autocast to bfloat16", "dtype in which layers compute"),
    Knob("precision-fp16", "float16", "models are called under autocast to float16", "dtype in which layers compute"),
    Knob("autocast-off", "no autocast", "autocast regions are off, scalers stay", "dtype in which layers compute"),
    Knob("scaler-off", "no scaler", "losses are not scaled, and no step is skipped", "steps that a scaler skips",
         ("stall/scaler-skips-steps", "precision/loss-not-scaled")),
    Knob("scaler-on", "scaler", "the loss is scaled by 2**12 for backward, gradients are unscaled before the step",
         "gradients that underflow", ("precision/no-grad-scaler", "precision/gradient-underflow")),
    Knob("unscaled-in-time", "unscaled", "gradients of a scaled loss are unscaled before they are clipped or used",
         "scaled gradients that are clipped or used", ("precision/clip-before-unscale", "precision/step-without-unscale")),
    Knob("epsilon", "larger epsilon", "an optimizer's epsilon is at least 1e-4 where weights have 16 bit",
         "an epsilon that is zero in 16 bit", ("precision/optimizer-epsilon",)),
    Knob("loss-in-32-bits", "loss in 32 bits", "loss functions are given 32 bit, and compute in it",
         "dtype in which the loss is computed", ("precision/loss-computed-in-half",)),
    Knob("backward-outside-autocast", "backward outside", "backward runs outside of autocast regions",
         "backwards inside an autocast region", ("precision/autocast-around-backward",)),
    Knob("onednn-older", "no AMX", "oneDNN uses no instructions that are newer than AVX-512 with bfloat16", "none of its own",
         ("crash/native-code",), (), "environment", {"values": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}}),
    Knob("onednn-off", "oneDNN off", "torch's own kernels instead of oneDNN's", "none of its own",
         ("crash/native-code",), (*HANGS, "crash/exception")),
    Knob("inplace-off", "not in place", "activations and dropout do not overwrite their input", "modules that work in place",
         (), HANGS),
    Knob("compile-off", "not compiled", "nothing is compiled", "whether compiled code runs", (), ("crash/exception",)),
    Knob("checkpointing-off", "no checkpoints", "activations are kept, not computed again", "forwards that run twice", ("checkpoint/random-inside",)),
    Knob("channels-last-off", "plain layout", "no tensor is put into channels_last", "tensors whose channels come last"),
    Knob("deterministic", "deterministic", "operations give the same numbers each time", "results that depend on chance"),
    # -- threads and processes -----------------------------------------------------------------------------------------
    Knob("openmp-limit-off", "no OpenMP limit", "OMP_THREAD_LIMIT and OMP_DYNAMIC are not set, whoever sets them",
         "threads that are asked for beyond the limit", ("hang/openmp-thread-limit",), (), "environment",
         {"values": {"OMP_THREAD_LIMIT": None, "OMP_DYNAMIC": None}}),
    Knob("spawn", "spawned", "processes that would be forked are started anew", "forks of a process with other threads",
         ("hang/openmp-after-fork", "hang/fork-with-live-threads"), ("hang/dataloader-worker",)),
    Knob("threads", "one thread", "torch computes with one thread (`threads:4`: with four)", "threads that torch counts on",
         ("hang/openmp-thread-limit", "hang/openmp-after-fork"), HANGS, argument="count"),
    Knob("workers", "no workers", "data loaders have no worker processes (`workers:2`: two)", "worker processes",
         ("hang/dataloader-worker", "data/workers-share-random-state"), ("crash/exception",), argument="count"),
    Knob("pipes-large", "large pipes", "the pipes to and from child processes hold as much as the system allows",
         "a process that waits for somebody to read what it has written", ("hang/pipe-nobody-reads",)),
    Knob("locks-as-one", "one lock", "all locks that the program makes itself are one, which its holder may take again",
         "locks that wait for each other", ("hang/python-lock",)),
    Knob("locks-free-at-fork", "locks free", "a fork waits until no other thread holds a lock",
         "locks that another thread holds while the process forks", ("hang/fork-with-live-threads",)),
    Knob("gradients-shared", "shared", "the ranks begin with the weights of rank 0, and each step uses the mean of their gradients",
         "weights that differ between ranks", ("ranks/diverged-weights",)),
    Knob("own-share", "own batches", "of the batches of the named loader each rank keeps its own share",
         "batches that are the same on every rank", ("ranks/same-data-on-every-rank",)),
    Knob("ranks-do-not-wait", "no waiting", "at the named lines no rank waits for the others: collectives return at once",
         "ranks that do not make the same calls", ("ranks/collective-missing", "ranks/collective-mismatch", "ranks/uneven-batches")),
    # -- what is logged --------------------------------------------------------------------------------------------
    Knob("one-counter", "one counter", "the points of a name are numbered by a counter that only grows", "steps that go back",
         ("logging/step-not-increasing", "logging/points-dropped")),
    Knob("folder-per-writer", "own folders", "each TensorBoard writer has a folder of its own", "writers that share a folder",
         ("logging/two-writers",)),
    Knob("nan-logged", "NaN logged", "the Trainer of transformers logs losses that are not finite as they are",
         "losses that the log shows as another number", ("logging/nan-hidden",)),
    # -- placebos ------------------------------------------------------------------------------------------------------
    Knob("seed", "other seed", "every seed is another one", "none: a placebo", argument="offset"),
    Knob("nothing", "nothing", "nothing", "none: a placebo"),
)  # fmt: skip
KNOBS: dict[str, Knob] = {knob.name: knob for knob in _ALL}


def knobs_for(rule: str) -> list[Knob]:
    """The knobs that remove the mechanism of a cause, best first."""
    return [knob for knob in KNOBS.values() if rule in knob.settles]


def knob_for(rule: str) -> Knob | None:
    """The knob that settles a cause, if there is one."""
    return next(iter(knobs_for(rule)), None)


def easing(rules: Sequence[str]) -> list[Knob]:
    """The knobs that may make these symptoms go away, whatever makes them."""
    return [knob for knob in KNOBS.values() if any(rule in knob.eases for rule in rules)]


def named(text: str) -> Knob:
    """The knob that the user means: `name`, or `name:value`."""
    name, _, value = text.partition(":")
    knob = KNOBS.get(name)
    if knob is None:
        raise KnobError(f"there is no knob {name}; `trainsleuth knobs` lists them.")
    if not value and knob.argument == "paths":
        raise KnobError(f"the knob {name} must be told a folder or a file: {name}:data/cache.")
    if not value:
        return knob
    if not knob.argument:
        raise KnobError(f"the knob {name} takes no value.")
    parsed: Any = [part.strip() for part in value.split(",")]
    if knob.argument not in ("modules", "paths"):
        try:
            parsed = int(value) if knob.argument in ("count", "offset") else float(value)
        except ValueError:
            raise KnobError(f"{value} is no number, as the knob {name} needs it.") from None
    label = f"{name} {value}"
    return Knob(text, label, knob.changes, knob.mechanism, (), (), knob.actuator or name, {knob.argument: parsed})


def own(text: str) -> Knob:
    """A knob of the user's own: `NAME=ENV:VARIABLE=value`, `NAME=--option=value`, `NAME=hydra.key=value`."""
    name, found, change = text.partition("=")
    if not found or not name or not change:
        raise KnobError(f"{text} is no knob: write NAME=--option=value, NAME=key=value, or NAME=ENV:VARIABLE=value.")
    if change.startswith("ENV:"):
        variable, found, value = change[4:].partition("=")
        if not variable or not found:
            raise KnobError(f"{text}: after ENV: comes VARIABLE=value; an empty value removes the variable.")
        return Knob(name, name, f"the variable {variable} is {value or 'not set'}", "the user's own", (), (), "environment",
                    {"values": {variable: value or None}})  # fmt: skip
    return Knob(name, name, f"the command line says {change}", "the user's own", (), (), "command-line", {"words": shlex.split(change)})
