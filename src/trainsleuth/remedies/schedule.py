"""Cures of the family `schedule`: the scheduler steps where its length is counted, after the optimizer, and is restored with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.batch_counts import must_be_known_at
from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import (
    argument,
    called,
    calls_at,
    grouped,
    iterated,
    loop_around,
    number_of,
    rewrite_as,
    text_of,
)
from trainsleuth.remedies.frameworks import HUGGING_FACE
from trainsleuth.remedies.gradients_discarded import behind_the_scaler, looks_like_a_step
from trainsleuth.remedies.source import NotPossible, Source, Statement, called_name, everything
from trainsleuth.remedies.values import named_numbers, written_out

LENGTH_OF_RUN = re.compile(r"after about ([\d,]+) steps; the run had ([\d,]+)")
LENGTHS = {
    "CosineAnnealingLR": (1, "T_max"), "PolynomialLR": (1, "total_iters"), "LinearLR": (3, "total_iters"),
    "ConstantLR": (2, "total_iters"), "StepLR": (1, "step_size"), "OneCycleLR": (2, "total_steps"),
    "get_linear_schedule_with_warmup": (2, "num_training_steps"), "get_cosine_schedule_with_warmup": (2, "num_training_steps"),
    "get_polynomial_decay_schedule_with_warmup": (2, "num_training_steps"),
}  # fmt: skip


def length_in_batches(source: Source, line: int) -> str:
    """The schedule's length is given in epochs and counted in batches: multiply it by the length of the loader."""
    for call in calls_at(source, line, *LENGTHS):
        position, keyword = LENGTHS[called_name(call)]
        given = argument(call, position, keyword)
        step = _scheduler_step(source, _bound_name(source, call))
        loop = loop_around(source, step)
        if given is None or not isinstance(loop, cst.For):
            continue
        loader = iterated(loop)
        if not isinstance(loader, (cst.Name, cst.Attribute)) or f"len({source.code(loader)})" in source.code(given.value):
            raise NotPossible(f"{keyword} cannot be counted in batches: the loop does not go over a loader")
        _must_be_known(source, call, loader)
        rewrite_as(source, given.value, f"{{x}} * len({source.code(loader)})", x=grouped(given.value))
        return f"the schedule is as long as the run: {keyword} counts batches, and the scheduler is stepped once a batch"
    raise NotPossible(f"{source.path.name}:{line} builds no schedule with a length")


def for_all_epochs(source: Source, line: int) -> str:
    """The schedule's length counts the batches of one epoch: multiply it by the number of epochs."""
    for call in calls_at(source, line, *LENGTHS):
        position, keyword = LENGTHS[called_name(call)]
        given = argument(call, position, keyword)
        epochs = _numbers_of_epochs(source)
        if given is None or len(epochs) != 1:
            continue
        text = next(iter(epochs))
        home = source.enclosing(call, cst.FunctionDef) or source.module
        made = [node for node in source.all(cst.Assign, home) if source.code(node.targets[0].target) == source.code(given.value)]
        length = made[0].value if len(made) == 1 else given.value
        if any(text in source.code(part) for part in (length, given.value)):
            raise NotPossible("the schedule's length counts epochs already")
        must_be_known_at(source, length, epochs[text])
        rewrite_as(source, length, "{x} * {y}", x=grouped(epochs[text]), y=grouped(length))
        return f"the schedule is as long as the run: line {source.first_line(length)} counts all {text} epochs"
    raise NotPossible(f"the length of the schedule in {source.path.name}:{line}, or the number of epochs, is not known there")


def _numbers_of_epochs(source: Source) -> dict[str, cst.BaseExpression]:
    """How many epochs the file trains for: what a trainer is told, or how far the loop goes that counts them."""
    told = [(call, "num_train_epochs") for call in called(source, *HUGGING_FACE)] + [(call, "max_epochs") for call in called(source, "Trainer")]
    found = [given.value for call, keyword in told if (given := argument(call, None, keyword)) is not None]
    for loop in source.all(cst.For):
        ends = loop.iter.args if isinstance(loop.iter, cst.Call) and called_name(loop.iter) in ("range", "trange") else []
        if len(ends) == 1 and re.search(r"(?i)epoch|^ep?$", source.code(loop.target)):
            found.append(ends[0].value)
    return {source.code(value): value for value in found}


def factor_not_rate(source: Source, line: int) -> str:
    """What a LambdaLR is given returns the rate: divided by the optimizer's rate it is the factor that is wanted."""
    for call in calls_at(source, line, "LambdaLR"):
        optimizer, given = argument(call, 0, "optimizer"), argument(call, 1, "lr_lambda")
        if optimizer is None or given is None or isinstance(given.value, (cst.List, cst.Tuple, cst.ListComp)):
            continue
        code = f'lambda step, rate={{x}}: rate(step) / {source.code(optimizer.value)}.defaults["lr"]'
        rewrite_as(source, given.value, code, x=grouped(given.value))
        return f"line {line} gives a factor: the rate that the function returns, divided by the optimizer's"
    raise NotPossible(f"{source.path.name}:{line} builds no LambdaLR with one function")


def _must_be_known(source: Source, call: cst.Call, loader: cst.BaseExpression) -> None:
    """The loader's name must have a value where the schedule is built."""
    name = source.code(loader)
    if name.startswith("self."):
        return
    home = source.enclosing(call, cst.FunctionDef)
    if home is not None and any(parameter.name.value == name for parameter in home.params.params):
        return
    for node in source.all(cst.Assign, home or source.module):
        if any(source.code(target.target) == name for target in node.targets) and source.first_line(node) < source.first_line(
            call
        ):
            return
    raise NotPossible(f"{name} is not known where the schedule is built")


def step_once_an_epoch(source: Source, line: int) -> str:
    """The scheduler's step leaves the loop over batches and comes behind it."""
    step = _scheduler_step(source, _name_at(source, line))
    statement = source.statement_of(step)
    loop = loop_around(source, statement)
    if loop is None or not any(called_name(call) == "backward" for call in source.all(cst.Call, loop)):
        raise NotPossible("the scheduler is not stepped inside the loop over batches")
    if source.parent(statement) is not loop.body:
        raise NotPossible("the scheduler's step stands under a condition")
    source.remove(_expression(statement))
    source.after(loop, source.code(statement))
    return f"the scheduler steps once an epoch, behind the loop in line {source.first_line(loop)}"


def step_once_a_batch(source: Source, line: int) -> str:
    """The scheduler's step moves behind the optimizer's, into the loop over batches."""
    step = _scheduler_step(source, _name_at(source, line))
    statement = source.statement_of(step)
    inner = _optimizer_step(source, statement)
    if loop_around(source, statement) is loop_around(source, inner):
        raise NotPossible("the scheduler is stepped with every batch already")
    source.remove(_expression(statement))
    source.after(behind_the_scaler(source, inner), source.code(statement))
    return f"the scheduler steps with every batch, behind the optimizer's step in line {source.first_line(inner)}"


def after_the_optimizer(source: Source, line: int) -> str:
    """The scheduler's step moves behind the optimizer's: of the same block, or behind the loop that holds it."""
    statement = source.statement_at(line)
    steps = [call for call in everything(statement) if isinstance(call, cst.Call) and called_name(call) == "step"]
    if not steps or not isinstance(statement, cst.SimpleStatementLine):
        raise NotPossible(f"{source.path.name}:{line} does not step a scheduler itself")
    block = source.block_of(statement)
    try:
        inner = _optimizer_step(source, statement)
    except NotPossible:
        return _to_the_end_of_the_epoch(source, statement, block)
    holder = next((other for other in block if other is inner or inner in list(everything(other))), None)
    if holder is None or block.index(holder) < block.index(statement):
        raise NotPossible("the optimizer's step does not come later in the same block")
    holder = behind_the_scaler(source, inner) if holder is inner else holder
    source.move_below([statement], holder)
    return f"the scheduler steps behind the optimizer (line {source.first_line(holder)})"


def _to_the_end_of_the_epoch(source: Source, statement: Statement, block: list[Statement]) -> str:
    """The epoch begins with the scheduler's step and trains in a function: the step moves to the end of the epoch."""
    loop = source.enclosing(statement, cst.For)
    last = block[-1]
    own = loop is not None and statement in list(loop.body.body)
    ends = isinstance(last, cst.SimpleStatementLine) and not isinstance(last.body[-1], (cst.Break, cst.Continue, cst.Return))
    inside_another = loop is not None and any(isinstance(above, (cst.For, cst.While)) for above in source.above(loop))
    if not own or statement is last or not ends or inside_another:
        raise NotPossible("the optimizer's step was not found beside the scheduler's")
    below = block[block.index(statement) + 1 :]
    trains = next((other for other in below if "optimizer" in source.code(other) or "train" in source.code(other)), None)
    if trains is None:
        raise NotPossible("no line of the epoch is known to train")
    source.move_below([statement], trains)
    return f"the scheduler steps at the end of the epoch's training (line {source.first_line(trains)}), not before it"


def _expression(statement: Statement) -> cst.CSTNode:
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else statement


def _name_at(source: Source, line: int) -> str:
    for call in calls_at(source, line):
        name = _bound_name(source, call)
        if name:
            return name
    return ""


def _bound_name(source: Source, call: cst.Call) -> str:
    assign = source.enclosing(call, cst.Assign)
    return source.code(assign.targets[0].target) if assign is not None and assign.value is call else ""


def _scheduler_step(source: Source, name: str) -> cst.Call:
    """The only step of this scheduler; of any scheduler if it is built under another name."""
    optimizers = {_receiver(source, call) for call in called(source, "zero_grad")}
    steps = [call for call in called(source, "step") if _receiver(source, call) not in ("", *optimizers)]
    last = name.rpartition(".")[2]
    by_name = [call for call in steps if last and _receiver(source, call) == last]
    made_of_one = {
        source.code(node.targets[0].target).rpartition(".")[2] for node in source.all(cst.Assign)
        if isinstance(node.value, cst.Call) and any(source.code(given.value).rpartition(".")[2] in optimizers for given in node.value.args)
    }  # fmt: skip
    found = by_name or [call for call in steps if _receiver(source, call) in made_of_one] or [
        call for call in steps if "sched" in source.code(call.func).lower()
    ]  # fmt: skip
    if len(found) != 1:
        raise NotPossible("the step of the scheduler was not found, or there are several")
    return found[0]


def _receiver(source: Source, call: cst.Call) -> str:
    return source.code(call.func.value).rpartition(".")[2] if isinstance(call.func, cst.Attribute) else ""


def _optimizer_step(source: Source, near: Statement) -> Statement:
    home = source.enclosing(near, cst.FunctionDef) or source.module
    found = [
        call
        for call in called(source, "step", below=home)
        if looks_like_a_step(source, call) and source.statement_of(call) is not near
    ]
    if len(found) != 1:
        raise NotPossible("the optimizer's step was not found beside the scheduler's")
    return source.statement_of(found[0])


def count_batches_not_samples(source: Source, line: int) -> str:
    """`len(dataset)` where the schedule counts batches: take the length of the loader that is made of it."""
    loaders = _loaders(source)
    for call in called(source, "len"):
        counted = source.code(call.args[0].value) if call.args else ""
        if counted in loaders and source.first_line(call) <= line and _leads_to(source, call, line):
            must_be_known_at(source, call, loaders[counted])
            loader = source.code(loaders[counted])
            source.replace(call.args[0].value, cst.parse_expression(loader))
            return f"line {source.first_line(call)} counts the batches of {loader}, not the samples of {counted}"
    raise NotPossible("no length of a data set leads to the schedule")


def _loaders(source: Source) -> dict[str, cst.BaseExpression]:
    """Each loader's name, where it is made, by that of its data set."""
    found: dict[str, cst.BaseExpression] = {}
    for node in source.all(cst.Assign):
        if isinstance(node.value, cst.Call) and called_name(node.value) == "DataLoader":
            data = argument(node.value, 0, "dataset")
            if data is not None and isinstance(data.value, (cst.Name, cst.Attribute)):
                found[source.code(data.value)] = node.targets[0].target
    return found


def _leads_to(source: Source, call: cst.Call, line: int) -> bool:
    """Whether the value is used at the line, or given a name that is."""
    statement = source.statement_of(call)
    if source.covers(statement, line):
        return True
    text = source.code(source.statement_at(line))
    return any(source.code(target.target) in text for node in everything(statement) if isinstance(node, cst.Assign)
               for target in node.targets)  # fmt: skip


def no_growth(source: Source) -> str:
    """A factor above 1 makes the learning rate grow without end."""
    for call in called(source, "ExponentialLR", "StepLR", "MultiStepLR"):
        given = argument(call, 1 if called_name(call) == "ExponentialLR" else 2, "gamma")
        factor = number_of(given.value) if given is not None else None
        if given is not None and factor is not None and factor > 1:
            rewrite_as(source, given.value, "1.0")
            return (
                f"the learning rate no longer grows by {factor:g} with each step of its schedule (line {source.first_line(call)})"
            )
    raise NotPossible("no schedule of this file makes the learning rate grow")


def warmup_that_fits(desk: Desk, finding: Diagnosed) -> str:
    """The length of the warm-up, wherever it is written out, becomes what makes it a tenth of the run."""
    told = next((found for text in finding.evidence if (found := LENGTH_OF_RUN.search(text))), None)
    if told is None:
        raise NotPossible("the length of the run is not known")
    needed, made = (int(number.replace(",", "")) for number in told.groups())
    for source, node in _warmup_lengths(desk, finding):
        try:
            value = written_out(source, node)
        except NotPossible:
            continue
        before = number_of(value) or 0
        after = max(1, int(0.1 * before * made / needed))
        if before > after:
            source.replace(value, cst.parse_expression(str(after)))
            return f"the warm-up lasts {after} instead of {before:g} (line {source.first_line(value)}): a tenth of this run"
    raise NotPossible("the length of the warm-up is not written out in these files or in what they import")


def _warmup_lengths(desk: Desk, finding: Diagnosed) -> Iterator[tuple[Source, cst.BaseExpression]]:
    """What the schedule, or the trainer that is configured, is given for its warm-up; then what bears such a name."""
    for source, line in list(desk.lines(finding)):
        for call in calls_at(source, line):
            given = argument(call, None, "num_warmup_steps", "warmup_steps", "warmup_iters", "total_iters", "warmup")
            if given is not None:
                yield source, given.value
    for source in list(desk.sources(finding)):
        for call in called(source, *HUGGING_FACE):
            given = argument(call, None, "warmup_steps")
            if given is not None:
                yield source, given.value
    for source in desk.sources_and_imports(finding):
        yield from ((source, value) for value in named_numbers(source, r"(?i)warm"))


def restore_the_scheduler(desk: Desk, finding: Diagnosed) -> str:
    """The scheduler's state is saved with the optimizer's and loaded with it."""
    for source, line in list(desk.lines(finding)):
        for call in calls_at(source, line, "load_state_dict"):
            if isinstance(call.func, cst.Attribute) and len(call.args) == 1 and isinstance(call.args[0].value, cst.Subscript):
                return _restore(source, call, call.args[0].value)
    raise NotPossible("the optimizer's state is not taken from a dictionary under a key")


def _restore(source: Source, load: cst.Call, taken: cst.Subscript) -> str:
    assert isinstance(load.func, cst.Attribute)
    optimizer = source.code(load.func.value)
    scheduler = _scheduler_of(source, optimizer)
    last = optimizer.rpartition(".")[2]
    saved = [
        entry for entry in source.all(cst.DictElement)
        if m.matches(entry.value, m.Call(func=m.Attribute(attr=m.Name("state_dict"))))
        and source.code(entry.value).partition(".state_dict")[0].rpartition(".")[2] == last
    ]  # fmt: skip
    if len(saved) != 1:
        raise NotPossible("the line that saves the optimizer's state was not found in this file")
    owner = source.parent(saved[0])
    if not isinstance(owner, cst.Dict):
        raise NotPossible("the optimizer's state is not saved in a dictionary")
    before = source.code(saved[0].value).partition(".state_dict")[0].rpartition(".")[0]
    saved_name = f"{before}.{scheduler.rpartition('.')[2]}" if before else scheduler
    entry = cst.DictElement(cst.parse_expression('"scheduler"'), cst.parse_expression(f"{saved_name}.state_dict()"))

    def add(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.Dict)
        elements = list(updated.elements)
        at = next(index for index, known in enumerate(owner.elements) if known is saved[0])
        comma = elements[at].comma
        between = (
            comma
            if isinstance(comma, cst.Comma) and at + 1 < len(elements)
            else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        )
        elements[at : at + 1] = [elements[at].with_changes(comma=between), entry.with_changes(comma=comma)]
        return updated.with_changes(elements=elements)

    source.edit(owner, add)
    container = source.code(taken.value)
    built = [node for node in source.all(cst.Assign) if source.code(node.targets[0].target) == scheduler]
    statement = source.statement_of(load)
    home = source.enclosing(load, cst.FunctionDef)
    _load_when_it_is_there(source, built, home)
    if any(
        source.first_line(node) > source.first_line(load) and source.enclosing(node, cst.FunctionDef) is home for node in built
    ):
        raise NotPossible("the scheduler is built after the state is loaded")
    source.after(statement, f'{scheduler}.load_state_dict({container}["scheduler"])')
    return f"the state of {scheduler} is saved and loaded with the optimizer's (line {source.first_line(load)})"


def _load_when_it_is_there(source: Source, built: list[cst.Assign], home: cst.FunctionDef | None) -> None:
    """A function of its own loads, and is called before the scheduler is built: the call moves behind that."""
    if home is None or len(built) != 1 or source.enclosing(built[0], cst.FunctionDef) is home:
        return
    made = source.statement_of(built[0])
    block = source.block_of(made)
    for earlier in block[: block.index(made)]:
        if any(isinstance(node, cst.Call) and called_name(node) == home.name.value for node in everything(earlier)):
            source.move_below([earlier], made)


def _scheduler_of(source: Source, optimizer: str) -> str:
    """The name of what is built from the optimizer and stepped."""
    last = optimizer.rpartition(".")[2]
    for node in source.all(cst.Assign):
        if (
            isinstance(node.value, cst.Call)
            and node.value.args
            and source.code(node.value.args[0].value).rpartition(".")[2] == last
        ):
            name = source.code(node.targets[0].target)
            stepped = {source.code(call.func).removesuffix(".step").rpartition(".")[2] for call in called(source, "step")}
            if name.rpartition(".")[2] in stepped:
                return name
    stepped = {source.code(call.func).removesuffix(".step") for call in called(source, "step")} - {optimizer}
    if len(stepped) == 1:
        return stepped.pop()
    raise NotPossible("the scheduler's name was not found in this file")


def in_lightning(interval: str) -> Callable[[Source], str]:
    """`configure_optimizers` says how often the scheduler is stepped; without a word it is once an epoch."""

    def way(source: Source) -> str:
        for function in source.all(cst.FunctionDef):
            if function.name.value != "configure_optimizers":
                continue
            for given in _schedulers_returned(source, function):
                said = _entry(given, "interval") if isinstance(given, cst.Dict) else None
                if said is not None and text_of(said) != interval:
                    rewrite_as(source, said, f'"{interval}"')
                elif said is None and interval == "step" and isinstance(given, (cst.Name, cst.Attribute, cst.Call)):
                    rewrite_as(source, given, 'dict(scheduler={x}, interval="step")', x=given)
                else:
                    continue
                return f"the scheduler is stepped once {'a batch' if interval == 'step' else 'an epoch'}: interval={interval!r}"
        raise NotPossible("no configure_optimizers says how often a scheduler is stepped")

    return way


def _schedulers_returned(source: Source, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """What `configure_optimizers` returns for its schedulers: `[optimizer], [scheduler]`, or a dictionary."""
    for returned in source.all(cst.Return, function):
        value = returned.value
        if isinstance(value, cst.Tuple) and len(value.elements) == 2 and isinstance(value.elements[1].value, cst.List):
            yield from (element.value for element in value.elements[1].value.elements)
        elif isinstance(value, cst.Dict):
            scheduler = _entry(value, "lr_scheduler")
            if scheduler is not None:
                yield scheduler


def _entry(dictionary: cst.Dict, key: str) -> cst.BaseExpression | None:
    return next(
        (element.value for element in dictionary.elements if isinstance(element, cst.DictElement) and text_of(element.key) == key), None
    )


def prepared_by_accelerate(source: Source) -> str:
    """A scheduler that is stepped for every micro-batch in Accelerate's `accumulate` is prepared, so that it steps with the optimizer only."""
    prepares = [call for call in called(source, "prepare") if isinstance(call.func, cst.Attribute)]
    prepared = {source.code(given.value) for call in prepares for given in call.args}
    blocks = [node for node in source.all(cst.With) if any(called(source, "accumulate", below=item) for item in node.items)]
    steps = [call.func.value for block in blocks for call in called(source, "step", below=block.body) if isinstance(call.func, cst.Attribute)]
    loose = [name for node in steps if isinstance(node, cst.Name) and (name := node.value) not in prepared]
    made = [node for node in source.all(cst.Assign) if source.code(node.targets[0].target) in loose and isinstance(node.value, cst.Call)]
    if len(set(loose)) != 1 or len(made) != 1 or not prepares or not {source.code(node) for node in steps} & prepared:
        raise NotPossible("no scheduler beside a prepared optimizer is stepped in an `accumulate` block")
    accelerator = cst.ensure_type(prepares[0].func, cst.Attribute).value
    places = [source.statement_of(made[0]), source.statement_of(prepares[0])]
    same_block = source.block_of(places[0]) == source.block_of(places[1])
    later = max(places, key=source.first_line) if same_block else places[0]
    source.after(later, f"{loose[0]} = {source.code(accelerator)}.prepare({loose[0]})")
    return f"{loose[0]} is prepared behind line {source.first_line(later)}: Accelerate steps it when the optimizer steps"
