"""Cures `nan/bad-sample`: what a data set gives holds no NaN any more; the place of a missing number is taken by zero."""

from __future__ import annotations

import re

import libcst as cst

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import add_import, imported
from trainsleuth.remedies.source import NotPossible, Source

FIELD = re.compile(r"field (\S+) of what (\w+) gives")
ANSWERS = re.compile(r"(?i)^(labels?|targets?|y|[1-9]\d*)$")


def missing_numbers_become_zero(desk: Desk, finding: Diagnosed) -> str:
    """`return self.x[i], self.y[i]`: the field that holds NaN is given as `torch.nan_to_num(…)`. A target that is missing is no zero."""
    found = next((match for text in finding.evidence if (match := FIELD.search(text))), None)
    if found is None:
        raise NotPossible("the field of the data set that holds the bad number is not known")
    field, dataset = found[1], found[2]
    if ANSWERS.match(field):
        raise NotPossible("a target that is missing cannot be made up: the sample must be left out")
    for source in desk.sources_and_imports(finding):
        for owner in source.all(cst.ClassDef):
            for function in (one for one in owner.body.body if isinstance(one, cst.FunctionDef) and one.name.value == "__getitem__"):
                if owner.name.value == dataset and (given := _given(source, function, field)) is not None:
                    if not imported(source, "torch"):
                        add_import(source, "import torch", "torch")
                    source.replace(given, cst.parse_expression(f"torch.nan_to_num(torch.as_tensor({source.code(given)}))"))
                    return (
                        f"line {source.first_line(given)} gives 0 where a number is missing; if 0 is not the mean of this field, "
                        "fill it with the mean, or leave the sample out"
                    )
    raise NotPossible("the data set does not return its fields where it can be seen")


def _given(source: Source, function: cst.FunctionDef, field: str) -> cst.BaseExpression | None:
    """The expression of one field: of a tuple by its place, of a dictionary by its key."""
    returned = [node.value for node in source.all(cst.Return, function) if node.value is not None]
    if len(returned) != 1:
        return None
    value = returned[0]
    if isinstance(value, cst.Tuple) and field.isdigit() and int(field) < len(value.elements):
        return value.elements[int(field)].value
    if isinstance(value, cst.Dict):
        for element in value.elements:
            if isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString) and element.key.evaluated_value == field:
                return element.value
    return None
