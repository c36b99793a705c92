"""Cures `data/labels-out-of-range` where the model has too few outputs: the number of classes is one more than the highest label."""

from __future__ import annotations

import re

import libcst as cst

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import called, number_of
from trainsleuth.remedies.source import NotPossible, Source
from trainsleuth.remedies.values import named_numbers

SEEN = re.compile(r"labels of the failing batch run from 0 to (\d+), the output has (\d+) columns")
NAMES = r"(?i)class|label|categor|n_out|num_out|out_dim|out_features"
LAYERS = ("Linear", "LazyLinear", "Conv1d", "Conv2d")


def an_output_for_each_label(desk: Desk, finding: Diagnosed) -> str:
    found = next((match for text in finding.evidence if (match := SEEN.search(text))), None)
    if found is None or not int(found[2]) <= int(found[1]) < 2 * int(found[2]):
        raise NotPossible("the labels do not look as if the model had one output too few")
    classes, wanted = int(found[2]), int(found[1]) + 1
    sources = list(desk.sources_and_imports(finding))
    for search in (_under_a_name, _in_a_layer):
        numbers = [(source, node) for source in sources for node in search(source, classes)]
        if len(numbers) == 1:
            source, node = numbers[0]
            source.replace(node, cst.Integer(str(wanted)))
            return f"the model has {wanted} outputs, one for each label from 0 to {wanted - 1} (line {source.first_line(node)})"
    raise NotPossible(f"no single line says that there are {classes} classes")


def _under_a_name(source: Source, classes: int) -> list[cst.BaseExpression]:
    return list(dict.fromkeys(node for node in named_numbers(source, NAMES) if number_of(node) == classes))


def _in_a_layer(source: Source, classes: int) -> list[cst.BaseExpression]:
    calls = called(source, *LAYERS)
    return [given.value for call in calls for given in call.args[1:2] if number_of(given.value) == classes]
