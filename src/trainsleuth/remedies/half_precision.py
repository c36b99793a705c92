"""Cures of half precision: bf16 for fp16, a scaler and its order of calls, an epsilon that half precision can hold."""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import (
    add_import,
    argument,
    called,
    calls_at,
    drop_argument,
    number_of,
    set_argument,
    text_of,
)
from trainsleuth.remedies.gradients_discarded import looks_like_a_step
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything
from trainsleuth.remedies.values import written_out

HALF = m.Attribute(value=m.Name("torch"), attr=m.Name("float16") | m.Name("half"))
USUAL_SCALE = 2.0**16


def bf16(source: Source) -> str:
    """bfloat16 has the range of 32 bit: nothing overflows at 65,504."""
    changed: list[cst.CSTNode] = []
    for call in called(source, "autocast"):
        given = argument(call, 1, "dtype")
        if given is not None and m.matches(given.value, HALF):
            source.replace(given.value, cst.parse_expression("torch.bfloat16"))
            changed.append(call)
    for call in called(source, "Trainer", "Fabric"):
        given = argument(call, None, "precision")
        if given is not None and (text_of(given.value) in ("16-mixed", "16", "16-true") or number_of(given.value) == 16):
            source.replace(given.value, cst.parse_expression('"bf16-mixed"'))
            changed.append(call)
    for call in called(source, "TrainingArguments", "Seq2SeqTrainingArguments"):
        given = argument(call, None, "fp16")
        if given is not None and given.keyword is not None and m.matches(given.value, m.Name("True")):
            source.replace(given.keyword, cst.Name("bf16"))
            changed.append(call)
    for call in called(source, "Accelerator"):
        given = argument(call, None, "mixed_precision")
        if given is not None and text_of(given.value) == "fp16":
            source.replace(given.value, cst.parse_expression('"bf16"'))
            changed.append(call)
    changed += _through_a_name(source)
    if not changed:
        raise NotPossible("no line of this file asks for float16")
    lines = ", ".join(str(source.first_line(call)) for call in changed)
    return f"bfloat16 instead of float16, which ends at 65,504 (line {lines})"


def _through_a_name(source: Source) -> list[cst.CSTNode]:
    """`dtype = torch.float16`, then `autocast(dtype=dtype)`."""
    found: list[cst.CSTNode] = []
    for call in called(source, "autocast"):
        given = argument(call, 1, "dtype")
        if given is None or not isinstance(given.value, (cst.Name, cst.Attribute)):
            continue
        for node in source.all(cst.Assign):
            if (
                source.code(node.targets[0].target) == source.code(given.value)
                and m.matches(node.value, HALF)
                and node not in found
            ):
                source.replace(node.value, cst.parse_expression("torch.bfloat16"))
                found.append(node)
    return found


def usual_scale(source: Source) -> str:
    """A scaler that begins far too high is given torch's own start."""
    for call in called(source, "GradScaler"):
        given = argument(call, None, "init_scale")
        if given is None:
            continue
        scale = number_of(written_out(source, given.value))
        if scale is not None and scale > USUAL_SCALE:
            drop_argument(source, call, given)
            backoff = argument(call, None, "backoff_factor")
            return f"the scaler in line {source.first_line(call)} begins at its usual {USUAL_SCALE:,.0f}" + (
                "" if backoff is None else "; its backoff_factor is as slow as before"
            )
    raise NotPossible("no scaler of this file begins above its usual scale")


def unscale_before_clipping(source: Source, line: int) -> str:
    """`scaler.unscale_(optimizer)` ahead of the clipping."""
    statement = source.statement_at(line)
    clips = [call for call in everything(statement) if isinstance(call, cst.Call) and called_name(call).startswith("clip_grad")]
    home: cst.CSTNode = source.enclosing(statement, cst.FunctionDef) or source.module
    if not clips:
        found = [call for call in called(source, "clip_grad_norm_", "clip_grad_value_", below=home)]
        if len(found) != 1:
            raise NotPossible(f"{source.path.name}:{line} does not clip gradients itself")
        statement = source.statement_of(found[0])
    steps = _scaler_steps(source, home)
    around = source.enclosing(statement, cst.ClassDef)
    if not steps and around is not None:  # the clipping is a method of its own
        steps = [step for step in _scaler_steps(source, around) if source.code(step.func).startswith("self.")]
        home = around
    if len(steps) != 1:
        raise NotPossible("the scaler's step was not found beside the clipping")
    scaler = source.code(steps[0].func).rpartition(".")[0]
    for late in called(source, "unscale_", below=home):
        alone = source.parent(late)
        if not isinstance(alone, cst.Expr):
            raise NotPossible("gradients are unscaled in the middle of something else")
        source.remove(alone)
    source.before(statement, f"{scaler}.unscale_({source.code(steps[0].args[0].value)})")
    return f"gradients are unscaled before they are clipped in line {source.first_line(statement)}"


def unscale_after_backward(source: Source, line: int) -> str:
    """Where the clipping is elsewhere: between the backward and the scaler's step of one block, in which each is made once."""
    step = source.statement_at(line)
    steps = [call for call in everything(step) if isinstance(call, cst.Call) and call in _scaler_steps(source, step)]
    if len(steps) != 1 or called(source, "unscale_"):
        raise NotPossible(f"{source.path.name}:{line} is no step of a scaler, or gradients are unscaled already")
    block = source.block_of(step)
    before = [other for other in block[: block.index(step)] if any(called_name(call) == "backward" for call in source.all(cst.Call, other))]
    if len(before) != 1 or not isinstance(before[0], cst.SimpleStatementLine):
        raise NotPossible("backward and the scaler's step do not stand in one block")
    scaler = source.code(steps[0].func).rpartition(".")[0]
    source.after(before[0], f"{scaler}.unscale_({source.code(steps[0].args[0].value)})")
    return f"gradients are unscaled behind the backward in line {source.first_line(before[0])}, before anybody clips them"


def _scaler_steps(source: Source, below: cst.CSTNode) -> list[cst.Call]:
    return [
        call for call in called(source, "step", below=below)
        if isinstance(call.func, cst.Attribute) and len(call.args) == 1 and re.search(r"scaler", source.code(call.func), re.I)
    ]  # fmt: skip


def scale_the_loss(source: Source, line: int) -> str:
    """`scaler.scale(loss).backward()` where the scaler steps the optimizer of this loss."""
    statement = source.statement_at(line)
    backward = next((call for call in calls_at(source, line) if called_name(call) == "backward"), None)
    home: cst.CSTNode = source.enclosing(statement, cst.FunctionDef) or source.module
    scalers = {source.code(step.func).rpartition(".")[0] for step in _scaler_steps(source, home)}
    if backward is None or not isinstance(backward.func, cst.Attribute) or len(scalers) != 1:
        raise NotPossible(f"{source.path.name}:{line} is no backward beside one scaler")
    loss, scaler = backward.func.value, scalers.pop()
    source.replace(loss, cst.parse_expression(f"{scaler}.scale({source.code(loss)})"))
    return f"the loss in line {line} is scaled before its backward"


def add_a_scaler(source: Source) -> str:
    """Loss scaling around the only backward and step of the file."""
    if "GradScaler" in source.code(source.module):
        raise NotPossible("there is a scaler already")
    backwards = [call for call in called(source, "backward") if isinstance(call.func, cst.Attribute)]
    steps = [call for call in called(source, "step") if looks_like_a_step(source, call)]
    contexts = called(source, "autocast")
    if len(backwards) != 1 or len(steps) != 1 or not contexts:
        raise NotPossible("there is not one backward and one step beside the autocast")
    if any(call for call in called(source, "clip_grad_norm_", "clip_grad_value_")):
        raise NotPossible("gradients are clipped; the clipping needs unscaled gradients")
    optimizer = source.code(steps[0].func).rpartition(".")[0]
    built = [
        node
        for node in source.all(cst.Assign)
        if source.code(node.targets[0].target) == optimizer and isinstance(node.value, cst.Call)
    ]
    if len(built) != 1:
        raise NotPossible("the line that builds the optimizer was not found")
    own = optimizer.startswith("self.")
    if not own and source.enclosing(built[0], cst.FunctionDef) is not source.enclosing(steps[0], cst.FunctionDef):
        raise NotPossible("optimizer and step are in different functions")
    scaler = "self.scaler" if own else "scaler"
    device = argument(contexts[0], 0, "device_type")
    made = f"torch.amp.GradScaler({source.code(device.value)})" if device is not None else "torch.amp.GradScaler()"
    source.after(source.statement_of(built[0]), f"{scaler} = {made}")
    loss = backwards[0].func
    assert isinstance(loss, cst.Attribute)
    source.replace(loss.value, cst.parse_expression(f"{scaler}.scale({source.code(loss.value)})"))
    step = source.statement_of(steps[0])
    source.replace(steps[0], cst.parse_expression(f"{scaler}.step({optimizer})"))
    source.after(step, f"{scaler}.update()")
    return f"a scaler keeps small gradients above what float16 can hold (lines {source.first_line(built[0])}, {source.first_line(step)})"


def step_through_the_scaler(source: Source) -> str:
    """`optimizer.step()` behind a scaled backward uses scaled gradients: the scaler must make the step."""
    scaled = [
        call
        for call in called(source, "scale")
        if isinstance(call.func, cst.Attribute) and "scaler" in source.code(call.func).lower()
    ]
    steps = [call for call in called(source, "step") if looks_like_a_step(source, call) and not call.args]
    if not scaled or len(steps) != 1:
        raise NotPossible("there is not one scaled backward and one plain step")
    scaler = source.code(scaled[0].func).rpartition(".")[0]
    optimizer = source.code(steps[0].func).rpartition(".")[0]
    source.replace(steps[0], cst.parse_expression(f"{scaler}.step({optimizer})"))
    if not any(source.code(call.func) == f"{scaler}.update" for call in called(source, "update")):
        source.after(source.statement_of(steps[0]), f"{scaler}.update()")
    return f"the scaler unscales the gradients and makes the step in line {source.first_line(steps[0])}"


def larger_epsilon(source: Source, line: int) -> str:
    """1e-8 is 0 in half precision."""
    for call in calls_at(source, line):
        if re.search(r"(?i)adam|rmsprop|adagrad|nadam|radam", called_name(call)):
            settings = [given for given in call.args if given.star == "**"]
            if settings:
                source.replace(settings[0].value, cst.parse_expression(f'{{**{source.code(settings[0].value)}, "eps": 1e-4}}'))
            else:
                set_argument(source, call, "eps", "1e-4")
            return f"{called_name(call)} in line {source.first_line(call)} has an eps that half precision can hold"
    raise NotPossible(f"{source.path.name}:{line} builds no Adam or the like itself")


def norms_in_full_precision(source: Source) -> str:
    """The model stays in 32 bit and computes in 16 under autocast: here only `.half()` or `.bfloat16()` on the model goes."""
    found = [call for call in called(source, "half", "bfloat16") if isinstance(call.func, cst.Attribute) and not call.args]
    if len(found) != 1:
        raise NotPossible("no single `.half()` or `.bfloat16()` on the model was found")
    call = found[0]
    assert isinstance(call.func, cst.Attribute)
    if isinstance(source.parent(call), cst.Expr):
        source.remove(source.parent(call) or call)
    else:
        source.replace(call, call.func.value)
    return f"line {source.first_line(call)} keeps the weights in 32 bit; compute in 16 bit under torch.autocast"


def made_in_full_precision(source: Source, line: int) -> str:
    """A model that `.to(dtype)` puts into 16 bit is put into 32 bit."""
    for call in calls_at(source, line, "to"):
        if not isinstance(call.func, cst.Attribute):
            continue
        given = argument(call, None, "dtype") or next((each for each in reversed(call.args) if "type" in source.code(each.value)
                                                       or "float16" in source.code(each.value)), None)  # fmt: skip
        if given is not None:
            source.replace(given.value, cst.parse_expression("torch.float32"))
            add_import(source, "import torch", "torch")
            return f"line {line} keeps the weights in 32 bit; compute in 16 bit under torch.autocast"
    raise NotPossible(f"{source.path.name}:{line} does not give a model another type")


def scaler_for_the_device(source: Source) -> str:
    """`GradScaler()` is one for CUDA, and switched off where there is none: it is made for the device of the autocast."""
    devices = {source.code(given.value) for call in called(source, "autocast") if (given := argument(call, 0, "device_type")) is not None}
    scalers = [call for call in called(source, "GradScaler") if argument(call, 0, "device") is None]
    if len(devices) != 1 or len(scalers) != 1 or "cuda.amp" in source.code(scalers[0].func):
        raise NotPossible("no scaler was found that is made for another device than the autocast")
    first = cst.Arg(cst.parse_expression(devices.pop()))
    source.edit(scalers[0], lambda updated: updated.with_changes(args=[first, *cst.ensure_type(updated, cst.Call).args]))
    return f"the scaler in line {source.first_line(scalers[0])} is made for the device of the autocast"


def backward_outside_autocast(source: Source, line: int) -> str:
    """backward, and what follows it, leaves the autocast block."""
    statement = source.statement_at(line)
    block = source.enclosing(statement, cst.With)
    if (
        block is None
        or not any("autocast" in source.code(item.item) for item in block.items)
        or not isinstance(block.body, cst.IndentedBlock)
    ):
        raise NotPossible(f"{source.path.name}:{line} is not directly inside an autocast block")
    body = list(block.body.body)
    if statement not in body or statement is body[0]:
        raise NotPossible("backward does not stand directly in the autocast block")
    at = body.index(statement)
    leaving = body[at:]

    def out(updated: cst.CSTNode) -> cst.FlattenSentinel[cst.CSTNode]:
        assert isinstance(updated, cst.With)
        assert isinstance(updated.body, cst.IndentedBlock)
        kept = updated.with_changes(body=updated.body.with_changes(body=updated.body.body[:at]))
        return cst.FlattenSentinel([kept, *leaving])

    source.edit(block, out)
    return f"backward in line {line} runs outside of autocast, in the types that forward chose"
