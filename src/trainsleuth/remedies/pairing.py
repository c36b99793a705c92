"""Inputs and targets that belong together: what sorts or shuffles does it to both."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m

from trainsleuth.remedies.expressions import argument, called, is_true, number_of, set_argument
from trainsleuth.remedies.source import NotPossible, Source, called_name, everything, names_in

TENSORS = ("tensor", "as_tensor", "LongTensor", "FloatTensor", "stack", "from_numpy", "pad_sequence")
PERMUTATIONS = ("randperm", "permutation")
ORDERS = ("randperm", "permutation", "argsort", "shuffle")


def same_order_for_both(source: Source) -> str:
    """`x = x[order]` without `y = y[order]`, though both are handed out together: the other side gets the order too."""
    for node in source.all(cst.Assign):
        target, value = node.targets[0].target, node.value
        if not (isinstance(target, cst.Name) and isinstance(value, cst.Subscript) and source.code(value.value) == target.value):
            continue
        index = value.slice[0].slice if len(value.slice) == 1 else None
        order = source.code(index.value) if isinstance(index, cst.Index) and isinstance(index.value, cst.Name) else ""
        home = source.enclosing(node, cst.FunctionDef) or source.module
        if order not in _orders(source, home):
            continue
        others = _handed_out_with(source, home, target.value)
        loose = [other for other in sorted(others) if f"{other}[{order}]" not in source.code(home)]
        if len(loose) == 1:
            source.after(source.statement_of(node), f"{loose[0]} = {loose[0]}[{order}]")
            return f"{loose[0]} is put in the same order as {target.value} (line {source.first_line(node)})"
    raise NotPossible("no line was recognised that puts one side in another order")


def the_rest_in_the_same_order(source: Source) -> str:
    """A function sorts or shuffles one part of what it hands out (a collate function, longest first): the other parts get the order too."""
    for function in source.all(cst.FunctionDef):
        for order, made in _orders(source, function).items():
            ordered = _depends_on(source, function, order, made)
            for parts in _handed_out(function):
                loose = [part for part in parts if not names_in(part) & ordered]
                if 0 < len(loose) < len(parts) and all(_is_made_of(source, function, part) for part in loose):
                    for part in loose:
                        source.replace(part, cst.parse_expression(f"{source.code(part)}[{order}]"))
                    said = " and ".join(source.code(part) for part in loose)
                    return f"{said} is put in the same order as the rest (line {source.first_line(loose[0])})"
    raise NotPossible("no function was recognised that puts only a part of what it hands out in another order")


def _depends_on(source: Source, home: cst.CSTNode, name: str, made: cst.Assign) -> set[str]:
    """The names of what is computed with the help of an order, its own, and that of what was sorted to get it, from there on."""
    sorted_first = {inner for target in made.targets if isinstance(target.target, cst.Tuple) for inner in names_in(target.target)}
    found, before = {name}, 0
    while len(found) > before:
        before = len(found)
        for node in source.all(cst.Assign, home):
            known = found | sorted_first if source.first_line(node) > source.first_line(made) else found
            if names_in(node.value) & known:
                found |= {inner for target in node.targets for inner in names_in(target.target)}
    return found | sorted_first


def _handed_out(function: cst.FunctionDef) -> Iterator[list[cst.BaseExpression]]:
    for node in everything(function):
        if isinstance(node, (cst.Yield, cst.Return)) and isinstance(node.value, (cst.Tuple, cst.Dict)):
            yield [element.value for element in node.value.elements]


def _is_made_of(source: Source, function: cst.FunctionDef, part: cst.BaseExpression) -> bool:
    """Whether a tensor is made here from what the function was given, one entry for each sample."""
    if isinstance(part, cst.Name):
        made = [node.value for node in source.all(cst.Assign, function) if source.code(node.targets[0].target) == part.value]
        return len(made) == 1 and isinstance(made[0], cst.Call) and called_name(made[0]) in TENSORS
    return isinstance(part, cst.Call) and called_name(part) in TENSORS


def _orders(source: Source, home: cst.CSTNode) -> dict[str, cst.Assign]:
    """The names that hold an order, with the line that makes each."""
    found = {}
    for node in source.all(cst.Assign, home):
        target = node.targets[0].target
        drawn = isinstance(node.value, cst.Call) and called(source, *ORDERS, below=node.value)
        if drawn and isinstance(target, cst.Name):
            found[target.value] = node
        name = _order_of_a_sort(source, node)
        if name and _is_an_index(source, home, name):
            found[name] = node
    return found


def _order_of_a_sort(source: Source, node: cst.Assign) -> str:
    """`order` of `lengths, order = lengths.sort()`, `_, order = torch.topk(x, k)`, `order = x.sort().indices` and `order = x.sort()[1]`."""
    target, value = node.targets[0].target, node.value
    if isinstance(target, cst.Tuple) and len(target.elements) == 2:
        name, call = source.code(target.elements[1].value), value
    elif m.matches(value, m.Attribute(attr=m.Name("indices")) | m.Subscript(slice=[m.SubscriptElement(m.Index(m.Integer("1")))])):
        name, call = source.code(target), value.value  # type: ignore[attr-defined]
    else:
        return ""
    if not isinstance(call, cst.Call) or called_name(call) not in ("sort", "topk") or not isinstance(call.func, cst.Attribute):
        return ""
    of_torch = m.matches(call.func.value, m.Name("torch"))
    position = (2 if called_name(call) == "topk" else 1) - (not of_torch)
    axis = argument(call, position, "dim")
    return name if axis is None or number_of(axis.value) == 0 else ""


def _is_an_index(source: Source, home: cst.CSTNode, name: str) -> bool:
    """Whether something is put in this order: `x[order]`, `x.index_select(0, order)`, `[rows[i] for i in order.tolist()]`."""
    index = m.Subscript(slice=[m.SubscriptElement(m.Index(m.Name(name))), m.ZeroOrMore()])
    chosen = m.Call(func=m.Attribute(attr=m.Name("index_select")), args=[m.Arg(), m.Arg(m.Name(name))])
    gone_through = m.CompFor(iter=m.Name(name) | m.Call(func=m.Attribute(value=m.Name(name), attr=m.Name("tolist"))))
    return any(m.matches(node, index | chosen | gone_through) for node in everything(home))


def _handed_out_with(source: Source, home: cst.CSTNode, name: str) -> set[str]:
    """Names that stand beside this one in a yield, a return, a TensorDataset or a zip."""
    found: set[str] = set()
    function = home if isinstance(home, cst.FunctionDef) else None
    parameters = {parameter.name.value for parameter in function.params.params} if function else None
    for node in everything(home):
        if isinstance(node, (cst.Yield, cst.Return)) and isinstance(node.value, cst.Tuple):
            groups = [element.value for element in node.value.elements]
        elif isinstance(node, cst.Yield) and isinstance(node.value, cst.BaseExpression):
            groups = []
        elif isinstance(node, cst.Call) and called_name(node) in ("TensorDataset", "zip"):
            groups = [given.value for given in node.args]
        else:
            continue
        sides = [_subject(group) for group in groups]
        if name in sides:
            found |= {side for side in sides if side and side != name and (parameters is None or side in parameters)}
    return found


def _subject(node: cst.BaseExpression) -> str:
    """`y` of `y[a:b]`."""
    inner = node.value if isinstance(node, cst.Subscript) else node
    return inner.value if isinstance(inner, cst.Name) else ""


def one_order_for_two_loaders(source: Source) -> str:
    """Two loaders that are read side by side must not shuffle each for itself."""
    for loop in source.all(cst.For):
        if not (isinstance(loop.iter, cst.Call) and called_name(loop.iter) == "zip" and len(loop.iter.args) == 2):
            continue
        built = [_built_as(source, source.code(given.value)) for given in loop.iter.args]
        shuffling = [call for call in built if call is not None and is_true(call, 2, "shuffle")]
        if len(shuffling) == 2:
            for call in shuffling:
                set_argument(source, call, "shuffle", "False")
            return "both loaders keep the order of the data, so the pairs hold; to shuffle, put both sides into one data set"
    raise NotPossible("no two loaders that shuffle are read side by side")


def _built_as(source: Source, name: str) -> cst.Call | None:
    for node in source.all(cst.Assign):
        if (
            source.code(node.targets[0].target) == name
            and isinstance(node.value, cst.Call)
            and called_name(node.value) == "DataLoader"
        ):
            return node.value
    return None


def one_permutation_for_both(source: Source) -> str:
    """Two sides that are shuffled each by a permutation of its own: the second one gets the first one's."""
    for home in (*source.all(cst.FunctionDef), source.module):
        drawn = [call for call in called(source, *PERMUTATIONS, below=home) if (source.enclosing(call, cst.FunctionDef) or source.module) is home]
        if len(drawn) != 2:
            continue
        made = source.parent(drawn[0])
        used = source.parent(drawn[1])
        if not (isinstance(made, cst.Assign) and isinstance(made.targets[0].target, cst.Name) and isinstance(used, (cst.Assign, cst.Index))):
            continue
        source.replace(drawn[1], made.targets[0].target)
        return f"line {source.first_line(drawn[1])} takes the order of line {source.first_line(drawn[0])}: both sides are shuffled alike"
    raise NotPossible("no two sides were recognised that are shuffled each for itself")


def sort_the_pairs(source: Source) -> str:
    """`x, y = zip(*items)`, then `x = sorted(x, ...)`: the items are sorted before they are taken apart."""
    for node in source.all(cst.Assign):
        sides, taken = node.targets[0].target, _taken_apart(node.value)
        if taken is None or not isinstance(sides, cst.Tuple):
            continue
        home = source.enclosing(node, cst.FunctionDef) or source.module
        names = [source.code(element.value) for element in sides.elements]
        for small, name, call in _sorted_alone(source, home):
            if name not in names or source.first_line(small) <= source.first_line(node):
                continue
            options = [f"key={_key_of_a_side(source, call, names.index(name))}"]
            reverse = argument(call, None, "reverse")
            if reverse is not None:
                options.append(f"reverse={source.code(reverse.value)}")
            source.replace(taken, cst.parse_expression(f"sorted({source.code(taken)}, {', '.join(options)})"))
            source.remove(small)
            return f"the samples are sorted before they are taken apart, not {name} alone (line {source.first_line(small)})"
    return _sort_the_batch(source)


def _sort_the_batch(source: Source) -> str:
    """`sorted((s for s, _ in batch), key=len)` beside `[y for _, y in batch]`: the batch is sorted first, and this side no more."""
    for call in called(source, "sorted"):
        side = call.args[0].value if call.args else None
        function = source.enclosing(call, cst.FunctionDef)
        if not isinstance(side, (cst.GeneratorExp, cst.ListComp)) or function is None or not isinstance(side.for_in.iter, cst.Name):
            continue
        batch, sample = side.for_in.iter.value, side.for_in.target
        places = [source.code(element.value) for element in sample.elements] if isinstance(sample, cst.Tuple) else []
        others = [one for one in (*source.all(cst.ListComp, function), *source.all(cst.GeneratorExp, function))
                  if one is not side and source.code(one.for_in.iter) == batch]  # fmt: skip
        if source.code(side.elt) not in places or side.for_in.ifs or not others or batch not in [p.name.value for p in function.params.params]:
            continue
        options = [f"key={_key_of_a_side(source, call, places.index(source.code(side.elt)))}"]
        reverse = argument(call, None, "reverse")
        if reverse is not None:
            options.append(f"reverse={source.code(reverse.value)}")
        statements = [one for one in function.body.body if isinstance(one, (cst.SimpleStatementLine, cst.BaseCompoundStatement))]
        source.before(statements[0], f"{batch} = sorted({batch}, {', '.join(options)})")
        plain = cst.ListComp(side.elt, side.for_in)
        source.replace(call, plain)
        return f"the samples are sorted before they are taken apart, not one side alone (line {source.first_line(call)})"
    raise NotPossible("no line was recognised that sorts one side alone after samples were taken apart")


def _taken_apart(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """`items` of `zip(*items)`, also of `map(list, zip(*items))`."""
    for call in everything(value):
        if isinstance(call, cst.Call) and called_name(call) == "zip" and len(call.args) == 1 and call.args[0].star == "*":
            return call.args[0].value
    return None


def _sorted_alone(source: Source, home: cst.CSTNode) -> Iterator[tuple[cst.BaseSmallStatement, str, cst.Call]]:
    """`x = sorted(x, ...)` and `x.sort(...)`: the statement, the name and the call."""
    for call in called(source, "sorted", "sort", below=home):
        small = source.parent(call)
        if m.matches(call, m.Call(func=m.Name("sorted"))) and isinstance(small, cst.Assign) and call.args:
            name = source.code(call.args[0].value)
            if name == source.code(small.targets[0].target):
                yield small, name, call
        elif isinstance(call.func, cst.Attribute) and isinstance(small, cst.Expr):
            yield small, source.code(call.func.value), call


def _key_of_a_side(source: Source, call: cst.Call, side: int) -> str:
    """What sorts one side, as a key for whole samples."""
    given = argument(call, None, "key")
    if given is None:
        return f"lambda sample: sample[{side}]"
    if isinstance(given.value, cst.Lambda):
        name = given.value.params.params[0].name.value
        body = m.replace(given.value.body, m.Name(name), cst.parse_expression(f"sample[{side}]"))
        assert isinstance(body, cst.BaseExpression)
        return f"lambda sample: {source.code(body)}"
    return f"lambda sample: {source.code(given.value)}(sample[{side}])"
