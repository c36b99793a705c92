"""What the known messages of torch, CUDA, NCCL and Python mean: the cause that they point to, the cure, and what would settle it.

A message says where something was noticed. That is why each entry is a suspicion, unless the message is the mechanism itself (a port
that is taken is taken). The order matters: the special stands before the general.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Crash = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """One message. `title` and `cure` may name groups of the pattern."""

    fault: str
    pattern: re.Pattern[str]
    title: str
    cause: str
    cure: tuple[str, ...]
    settle: str
    note: str = "raised here"  # of the user's innermost line
    certain: bool = False  # the message is the mechanism itself


def _known(fault: str, pattern: str, title: str, cause: str, cure: Sequence[str], settle: str, **more: Any) -> Known:
    return Known(fault, re.compile(pattern, re.DOTALL), title, cause, tuple(cure), settle, **more)


KNOWN: tuple[Known, ...] = (
    _known(
        "autograd/modified-in-place",
        r"modified by an inplace operation: \[(?P<tensor>[^\]]*\]?)\](?:, which is output \d+ of "
        r"(?P<saver>\w+))?.*?version (?P<now>\d+); expected version (?P<saved>\d+)",
        "a tensor that backward needs was changed in place after {saver} had saved it",
        "an in-place operation (+=, relu_, x[mask] = …, an optimizer step) changed the saved tensor {steps} between forward and backward",
        ["Replace the in-place operation by one that makes a new tensor (y = y + 1), or move it before the operation that saves."],
        "run it with `trainsleuth run`, or with torch.autograd.set_detect_anomaly(True), which names the line that saved the tensor",
        note="the backward that noticed it",
    ),
    _known(
        "autograd/graph-freed", r"Trying to backward through the graph a second time",
        "backward went through the same graph a second time",
        "a tensor of an earlier step is still in the loss (a hidden state, a running sum, a cached embedding), or backward is called twice",
        ["Detach what is carried from one step to the next: state = state.detach().",
         "If two losses share a graph, add them and call backward once; retain_graph=True only hides it and keeps the memory."],
        "print the grad_fn of what is carried over from the last step: it must be None", note="the second backward",
    ),
    _known(
        "autograd/leaf-modified",
        r"leaf Variable that requires grad (?:is being used in|has been moved into).*in-?place|"
        r"view of a leaf Variable that requires grad is being used in an in-place",
        "a parameter was changed in place while gradients are recorded",
        "the parameter is written directly (initialisation, clamping, an update by hand) outside torch.no_grad()",
        ["Put the change into `with torch.no_grad():`, or use torch.nn.init."],
        "the line itself", certain=True,
    ),
    _known(
        "autograd/nothing-requires-grad", r"element \d+ of tensors does not require grad and does not have a grad_fn",
        "the loss has no graph: nothing it was made of requires a gradient",
        "the forward ran under no_grad or inference_mode, the parameters are frozen, or the loss was made anew from numbers "
        "(.item(), .detach(), .numpy(), torch.tensor(loss), argmax)",
        ["Look from this line upwards for the first tensor whose requires_grad is False."],
        "print(loss.requires_grad, loss.grad_fn) after each line of the forward", note="the backward of a loss without a graph",
    ),
    _known(
        "data/labels-out-of-range", r"Target (?P<label>-?\d+) is out of bounds",
        "label {label} does not exist in the model's output",
        "a label is not between 0 and the number of classes minus 1",
        ["Count the classes again: labels from 1 to C need a subtraction, or C + 1 outputs; a mask value of 255 needs ignore_index=255."],
        "print(labels.min(), labels.max(), logits.shape) before the loss", certain=True,
    ),
    _known(
        "data/labels-out-of-range", r"(?:nll_loss|cross_entropy|Loss\.cu)[^\n]*Assertion `?(?:t >= 0 && t < n_classes|cur_target >= 0)",
        "a label on the GPU is not between 0 and the number of classes minus 1",
        "labels and the model's head do not agree; the kernel of the loss noticed it",
        ["Count the classes again: labels from 1 to C need a subtraction, or C + 1 outputs."],
        "print(labels.min(), labels.max(), logits.shape) before the loss, or run one batch on the CPU",
    ),
    _known(
        "data/index-out-of-range",
        r"(?:Indexing\.cu|IndexKernel|indexSelect|ScatterGather)[^\n]*Assertion|index out of range in self|"
        r"srcIndex < srcSelectDimSize",
        "an index is larger than the table it looks into",
        "a token, a position or a category is not below the size of the embedding (a tokenizer with added tokens, "
        "a sequence longer than the positions)",
        ["After adding tokens: model.resize_token_embeddings(len(tokenizer)). Else cut the sequences, or enlarge the embedding."],
        "print(ids.max(), embedding.num_embeddings) before the call, or run one batch on the CPU",
    ),
    _known(
        "crash/device-side-assert", r"device-side assert triggered",
        "an assertion failed inside a CUDA kernel, some time before this line",
        "mostly a label or an index that is out of range; CUDA reports it late, so this line may be innocent",
        ["Run one batch on the CPU, or with CUDA_LAUNCH_BLOCKING=1: the traceback then ends at the right line."],
        "the lines `Assertion … failed` above the traceback, which name the kernel", note="where CUDA reported it, not where it happened",
    ),
    _known(
        "memory/out-of-memory", r"(?:CUDA|HIP|XPU|MPS backend) out of memory(?:\. Tried to allocate (?P<size>[\d.]+ \w+))?",
        "the GPU's memory is full{tried}",
        "the batch, the sequence length or the activations need more than is there; or memory grows because something keeps its graph",
        ["Make the batch smaller and accumulate gradients, or use torch.utils.checkpoint, or 16-bit activations.",
         "If it happens only after many steps: add up loss.item(), not loss, and look for lists that keep tensors."],
        "whether torch.cuda.memory_allocated() grows from step to step: if so something is kept, else the batch is too large",
    ),
    _known(
        "memory/out-of-memory",
        r"DefaultCPUAllocator: (?:can't|not enough memory)|(?:Detected \d+ oom[_-]kill|"
        r"Out of memory: Killed process)|Unable to allocate [\d.]+ [KMGT]iB",
        "the machine's memory is full",
        "the data, the copies of it in each DataLoader worker, or a list that grows need more than is there",
        ["Use fewer workers, load data lazily or memory-mapped, and keep no tensors in lists."],
        "watch the memory of each process over some epochs: a constant one is too large, a growing one leaks",
    ),
    _known(
        "data/shared-memory",
        r"bus error|Bus error|insufficient shared memory|out of shared memory|unable to (?:open|"
        r"allocate) shared memory|No space left on device.*shm",
        "a DataLoader worker died because shared memory is full",
        "workers hand batches over through /dev/shm, which is 64 MB in a container by default",
        ["docker run --shm-size=8g (or --ipc=host), in Kubernetes an emptyDir of medium Memory on /dev/shm.",
         "Or num_workers=0, or torch.multiprocessing.set_sharing_strategy('file_system')."],
        "df -h /dev/shm while it runs",
    ),
    _known(
        "data/worker-killed", r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is killed by signal: (?P<signal>[\w ]+)|exited unexpectedly)",
        "a DataLoader worker died{by}",
        "killed from outside (memory: signal Killed), or by a fault in native code of the dataset (Segmentation fault)",
        ["With num_workers=0 the fault happens in the main process and names its line."],
        "num_workers=0; and `dmesg | grep -i oom` for a worker that was killed", note="the loop over the loader",
    ),
    _known(
        "data/batch-of-unequal-samples",
        r"stack expects each tensor to be equal size, but got (?P<one>\[[^\]]*\]) at entry \d+ and "
        r"(?P<other>\[[^\]]*\])",
        "samples of one batch have different shapes: {one} and {other}",
        "the dataset gives samples as they are, and the default collate function can only stack equal ones",
        ["Resize or crop in the dataset, or pad in a collate_fn."],
        "the shapes of a few samples: [d[i].shape for i in range(20)]", certain=True,
    ),
    _known(
        "crash/shape-mismatch", r"mat1 and mat2 shapes cannot be multiplied \((?P<rows>\d+)x(?P<has>\d+) and (?P<needs>\d+)x(?P<out>\d+)\)",
        "a linear layer expects {needs} features and is given {has}",
        "the size of the layer before has changed (another image size, another backbone), or a flatten or a transpose is missing",
        ["Give the layer {has} inputs, or bring the features to {needs}."],
        "print(x.shape) before the layer", certain=True,
    ),
    _known(
        "crash/shape-mismatch",
        r"(?:Given groups=\d+, weight of size (?P<weight>\[[^\]]*\]), expected input(?P<input>\[[^\]]*\]) to have "
        r"(?P<needs>\d+) channels, but got (?P<has>\d+))",
        "a convolution expects {needs} channels and is given {has}",
        "grey images where colour is expected (or the reverse), or channels in the last place instead of the second",
        ["Convert the images, or give the layer {has} input channels; NHWC data needs permute(0, 3, 1, 2)."],
        "print(x.shape) before the layer", certain=True,
    ),
    _known(
        "crash/target-size",
        r"Target size \(torch\.Size\((?P<target>\[[^\]]*\])\)\) must be the same as input size "
        r"\(torch\.Size\((?P<input>\[[^\]]*\])\)\)|"
        r"Using a target size \(torch\.Size\((?P<t2>\[[^\]]*\])\)\) that is different to the input size",
        "the loss is given an output and a target of different shapes",
        "one of the two has a dimension of size 1 too much or too few",
        ["output.squeeze(1) or target.unsqueeze(1); and target.float() for BCE."],
        "print(output.shape, target.shape) before the loss", certain=True,
    ),
    _known(
        "crash/target-size", r"Expected input batch_size \((?P<has>\d+)\) to match target batch_size \((?P<target>\d+)\)",
        "the model gives {has} rows for {target} labels",
        "a view or reshape has moved a part of the features into the batch, or labels of a sequence are not flattened as the logits are",
        ["Flatten both alike: logits.view(-1, classes) with labels.view(-1); x.flatten(1) keeps the batch."],
        "print(logits.shape, labels.shape) before the loss", certain=True,
    ),
    _known(
        "crash/shape-mismatch",
        r"size of tensor a \((?P<one>\d+)\) must match the size of tensor b \((?P<other>\d+)\) at non-singleton "
        r"dimension (?P<axis>\d+)",
        "two tensors do not fit together: {one} against {other} in dimension {axis}",
        "a shape is not what this line expects (a skip connection after a stride, sequences of different length, a mask of another length)",
        ["Print both shapes above this line and bring them together."],
        "print(a.shape, b.shape) before the line", certain=True,
    ),
    _known(
        "precision/dtype-mismatch",
        r"(?:mat1 and mat2 must have the same dtype, but got (?P<one>\w+) and (?P<other>\w+)|"
        r"expected (?:m1 and m2 to have the same dtype|scalar type (?P<e>\w+) but found (?P<f>\w+))|"
        r"Input type \((?P<i>[^)]*)\) and (?:weight|bias) type \((?P<w>[^)]*)\) should be the same)",
        "an input and the weights have different number types or devices",
        "the model was put to half precision (or on the GPU) and the input was not, or a part of the model runs outside autocast",
        ["Use torch.autocast instead of model.half(); or convert the input: x.to(dtype=weight.dtype, device=weight.device)."],
        "print(x.dtype, x.device, layer.weight.dtype, layer.weight.device)", certain=True,
    ),
    _known(
        "crash/two-devices", r"Expected all tensors to be on the same device.*?(?P<one>cpu|cuda:\d+|mps:\d+).*?(?P<other>cpu|cuda:\d+|mps:\d+)",
        "tensors on {one} and {other} meet in one operation",
        "a batch, a buffer or a tensor made in forward (torch.zeros, torch.arange) stayed on the other device",
        ["Make tensors with device=x.device; register constant tensors with register_buffer."],
        "print the .device of each argument on this line", certain=True,
    ),
    _known(
        "crash/loss-of-integers",
        r"expected scalar type (?:Long|Float) but found|\"\w+\" not implemented for '(?P<type>\w+)'|"
        r"Found dtype (?P<found>\w+) but expected (?P<expected>\w+)",
        "an operation is given numbers of a type that it does not take",
        "labels of a class loss must be int64, those of BCE and MSE floating point; some operations do not exist for 16-bit numbers on the CPU",
        ["labels.long() for cross_entropy, target.float() for BCE and MSE."],
        "print(output.dtype, target.dtype)", certain=True,
    ),
    _known(
        "ranks/unused-parameters", r"Expected to have finished reduction in the prior iteration",
        "DDP waits for gradients of parameters that the loss did not use",
        "a branch of the model was not used in this step, or an output does not take part in the loss",
        ["Remove the unused parts, or find_unused_parameters=True (which costs a walk through the graph each step)."],
        "TORCH_DISTRIBUTED_DEBUG=DETAIL names the parameters", note="the step after the one whose gradients are missing",
    ),
    _known(
        "ranks/collective-mismatch", r"Detected mismatch between collectives on ranks|Collectives? (?:differ|mismatch)",
        "ranks call different collectives at the same time",
        "a condition that differs between ranks (`if rank == 0`, an early stop, a batch fewer) stands around a collective",
        ["Let every rank make the same collectives in the same order."],
        "TORCH_DISTRIBUTED_DEBUG=DETAIL names what each rank called",
    ),
    _known(
        "ranks/collective-timeout",
        r"(?:OpType=(?P<op>\w+).*?ran for (?P<ms>\d+) milliseconds|collective operation timeout|"
        r"Timed out waiting (?P<gloo>\d+)ms for (?:recv|send) operation|wait timeout after \d+ms|Socket Timeout)",
        "a collective was never joined by all ranks{op_words}",
        "another rank crashed, is still busy (long validation, checkpoint, download on rank 0), or made another collective instead",
        ["Look at the rank that says nothing about the timeout: what it did last is the cause.",
         "Work that only rank 0 does must end before the next collective, or the timeout must be longer than it takes."],
        "TORCH_FR_BUFFER_SIZE=2000 with TORCH_NCCL_DUMP_ON_TIMEOUT=1, or `trainsleuth run`, which holds the ranks side by side",
        note="where this rank waited",
    ),
    _known(
        "ranks/other-rank-died",
        r"ncclRemoteError|remote process exited|(?<!Errno 104\] )Connection (?:closed|reset) by (?:peer|remote)|(?<!Errno 32\] )Broken pipe|"
        r"ChildFailedError|failed \(exitcode",
        "another rank ended first, and this one only noticed",
        "the cause is in the output of the rank that ended first",
        ["Read the traceback of the other rank; torchrun names it under `Root Cause (first observed failure)`."],
        "the log of each rank for itself: torchrun --log-dir logs --redirects 3",
    ),
    _known(
        "checkpoint/keys-do-not-fit", r"Error\(s\) in loading state_dict for (?P<model>\w+):.*?(?:Missing key|Unexpected key)",
        "the checkpoint's names do not fit {model}",
        "{keys}",
        ["{key_cure}"],
        "compare list(checkpoint)[:5] with list(model.state_dict())[:5]", certain=True,
    ),
    _known(
        "checkpoint/sizes-do-not-fit",
        r"Error\(s\) in loading state_dict for (?P<model>\w+):.*?size mismatch for (?P<name>[\w.]+): copying a "
        r"param with shape torch\.Size\((?P<saved>\[[^\]]*\])\) from checkpoint, the shape in current model is "
        r"torch\.Size\((?P<now>\[[^\]]*\])\)",
        "{name} is {saved} in the checkpoint and {now} in the model",
        "the model was built with other settings than the one that was saved (classes, width, vocabulary)",
        ["Build the model with the settings of the checkpoint; to replace a head, drop its entries and load with strict=False."],
        "the configuration that the checkpoint was made with", certain=True,
    ),
    _known(
        "checkpoint/weights-only", r"Weights only load failed.*?(?:Unsupported global: GLOBAL (?P<global>[\w.]+))?(?: was not|$)",
        "torch.load refuses the file: it holds more than tensors",
        "since torch 2.6 weights_only=True is the default, and the file holds other objects",
        ["Save only state_dicts and plain values. For a file you trust: torch.serialization.safe_globals([…]) with the class it names."],
        "whether you trust the file: weights_only=False runs whatever it says", certain=True,
    ),
    _known(
        "data/not-picklable",
        r"Can't (?:pickle|get) (?:local )?(?:object|attribute)? ?'?(?P<thing>[^'\n]+)'?|"
        r"cannot pickle '(?P<kind>[^']+)' object|Can't pickle <function (?P<lambda><lambda>)",
        "a DataLoader worker or a spawned process cannot be given {what}",
        "where processes are spawned (Windows, macOS, Python 3.14, or by choice), all they are given is pickled: lambdas, local functions, "
        "open files and locks cannot be",
        ["Make it a function or class at the top of a module (functools.partial instead of a lambda); open files in the worker."],
        "num_workers=0 works", note="starts the workers", certain=True,
    ),
    _known(
        "hang/no-main-guard", r"attempt has been made to start a new process before the\s+current process has finished its bootstrapping phase",
        "the script starts processes when it is imported",
        "a spawned process imports the script again, and the script has no `if __name__ == \"__main__\":`",
        ['Put what the script does into main(), and call it below `if __name__ == "__main__":`.'],
        "the line itself", note="runs again in each child", certain=True,
    ),
    _known(
        "ranks/address-in-use", r"EADDRINUSE|[Aa]ddress already in use",
        "the port of the rendezvous is taken",
        "another run on this machine uses it, or an earlier one left a process behind",
        ["torchrun --standalone chooses a free port (or --master-port=0); end what is left: `ps -ef | grep train`."],
        "ss -ltnp | grep <port> names the process", certain=True,
    ),
    _known(
        "data/too-many-open-files", r"Too many open files|received 0 items of ancdata",
        "the process has too many open files",
        "files are opened and not closed, or workers hand each tensor over as an open file",
        ["torch.multiprocessing.set_sharing_strategy('file_system'), or `ulimit -n 65535`; open files in a `with` block."],
        "ls /proc/<pid>/fd | wc -l over time: growing means that something is not closed",
    ),
    _known(
        "compile/unsupported", r"(?:Unsupported|TorchRuntimeError|InternalTorchDynamoError|BackendCompilerFailed): (?P<what>[^\n]+)",
        "torch.compile cannot trace this: {what}",
        "the function does something that a graph cannot hold, and fullgraph=True forbids to break it",
        ["Move it out of the compiled function, or drop fullgraph=True; the line under `from user code` is the one."],
        "TORCH_LOGS=graph_breaks lists every such line", certain=True,
    ),
    _known(
        "crash/illegal-instruction", r"Illegal instruction",
        "native code used an instruction that this processor does not bear",
        "a library chose code for a newer processor than this one, or a virtual machine names an instruction set that it does not let through (AMX); "
        "in torch it is mostly oneDNN, and often only with bfloat16",
        ["ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 before the command, or AVX2 if that is still too new; ATEN_CPU_CAPABILITY=avx2 for torch's own.",
         "A library that was compiled on another machine (-march=native) must be built anew here."],
        "trainsleuth prove: the same run without AMX, and without oneDNN", note="here native code broke",
    ),
    _known(
        "crash/native", r"Segmentation fault|Illegal instruction|Aborted|Bus error|Fatal Python error",
        "a fault in native code ended the process",
        "a library that was built for another version (of torch, CUDA, NumPy), or a bug in an extension",
        ["Look at what this line hands to native code: memory that is no longer there (as_strided, ctypes, from_numpy of a buffer that was freed), "
         "an index without a check; else reinstall the library.",
         "Without a line: python -X faulthandler train.py names it."],
        "the Python stack that faulthandler prints", note="here native code broke",
    ),
    _known(
        "crash/killed", r"signal: Killed",
        "the system killed the process",
        "mostly because memory ran out; or a time limit of the cluster",
        ["`dmesg | grep -i oom` and the scheduler's log say which."],
        "dmesg, or the job's accounting (sacct -j <job> --format=State,MaxRSS)",
    ),
)  # fmt: skip

_FOLLOWS = re.compile(
    r"ChildFailedError|ncclRemoteError|remote process exited|Connection (?:closed|reset) by|Broken pipe|EOFError|exited unexpectedly|"
    r"ConnectionResetError|device-side assert triggered|C\+\+ exception"
)


def text_of(crash: Crash) -> str:
    """What the exception says, with those before it in its chain, and with what other lines said of the same death."""
    own = f"{crash.get('kind', '')}: {crash.get('message', '')}"
    before = [f"{one.get('kind', '')}: {one.get('message', '')}" for one in crash.get("before") or [] if isinstance(one, dict)]
    return "\n".join([own, *before, *map(str, crash.get("also") or [])])


def known(crash: Crash) -> tuple[Known, re.Match[str]] | None:
    """The first entry that fits."""
    text = text_of(crash)
    for entry in KNOWN:
        match = entry.pattern.search(text)
        if match is not None:
            return entry, match
    return None


def follows(crash: Crash) -> bool:
    """Whether it only reports that something else broke before."""
    return _FOLLOWS.search(f"{crash.get('kind', '')}: {crash.get('message', '')}") is not None


def first_of(crashes: Sequence[Crash]) -> Crash | None:
    """Of several crashes of one run the one to explain: the earliest that is not merely a consequence, with frames if there are any."""
    own = [crash for crash in crashes if not follows(crash)] or list(crashes)
    return min(own, key=lambda crash: (not crash.get("frames"), crash.get("at") or 0), default=None)


def words(entry: Known, match: re.Match[str]) -> dict[str, str]:
    """The groups of the pattern, and the few words that depend on them."""
    groups = {name: value or "" for name, value in match.groupdict().items()}
    text = match.string
    found = {
        **groups,
        "saver": groups.get("saver") or "an operation",
        "steps": _times(groups),
        "tried": f" (it asked for {groups['size']})" if groups.get("size") else "",
        "by": f" by the signal {groups['signal'].strip()}" if groups.get("signal") else "",
        "op_words": f": {groups['op'].strip('_').lower()}" if groups.get("op") else "",
        "what": groups.get("what") or groups.get("thing") or groups.get("kind") or groups.get("lambda") or "this object",
    }
    found["keys"], found["key_cure"] = _key_words(text)
    return found


def _times(groups: dict[str, str]) -> str:
    now, saved = groups.get("now"), groups.get("saved")
    times = int(now) - int(saved) if now and saved and now.isdigit() and saved.isdigit() else 0
    return f"{times} times" if times > 1 else "once" if times == 1 else ""


def _key_words(text: str) -> tuple[str, str]:
    for prefix, why in (("module.", "saved from a model inside DataParallel or DDP"), ("_orig_mod.", "saved from a compiled model"),
                        ("model.", "saved from a LightningModule or a wrapper")):  # fmt: skip
        missing, unexpected = _listed(text, "Missing"), _listed(text, "Unexpected")
        if unexpected and all(name.startswith(prefix) for name in unexpected):
            return (f"every name in the checkpoint begins with `{prefix}`: it was {why}",
                    f"Take the prefix off: {{name.removeprefix('{prefix}'): value for name, value in state.items()}}.")  # fmt: skip
        if missing and all(name.startswith(prefix) for name in missing):
            return (f"every name in the model begins with `{prefix}` and none in the checkpoint does: only the model is wrapped",
                    "Load before wrapping, or into model.module.")  # fmt: skip
    return "the model has other parts than the one that was saved", "Load what fits with strict=False and read what it returns."


def _listed(text: str, which: str) -> list[str]:
    match = re.search(which + r" key\(s\) in state_dict: ([^\n]*)", text)
    return re.findall(r'"([^"]+)"', match[1]) if match else []


def different_collectives(crashes: Sequence[Crash]) -> Iterator[str]:
    """Ranks whose watchdogs name different collectives under the same number."""
    seen: dict[str, dict[str, list[str]]] = {}
    for crash in crashes:
        match = re.search(r"SeqNum=(\d+), OpType=(\w+), NumelIn=(\d+)", str(crash.get("message", "")))
        if match is not None and crash.get("rank") is not None:
            what = f"{match[2].strip('_').lower()} of {int(match[3]):,} numbers"
            seen.setdefault(match[1], {}).setdefault(what, []).append(str(crash["rank"]))
    for number, by_what in seen.items():
        if len(by_what) > 1:
            told = "; ".join(f"rank {', '.join(sorted(set(ranks)))} {what}" for what, ranks in by_what.items())
            yield f"collective number {number} is not the same on all ranks: {told}"
