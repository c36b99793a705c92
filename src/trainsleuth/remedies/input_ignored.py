"""Cures `stall/input-ignored` where a norm has nothing to compare (over a single number, what is left of it is zero), and `stall/mask-inverted`."""

from __future__ import annotations

import re

import libcst as cst

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import argument, calls_at, grouped, rewrite_as, torch_nn
from trainsleuth.remedies.source import NotPossible, Source, called_name

NORMS = re.compile(r"(?:Layer|Group|Instance)Norm\d?d?$")


def no_norm_of_one_number(desk: Desk, finding: Diagnosed) -> str:
    """The norm that the finding names, where it is an attribute of a module, becomes an identity."""
    said = " ".join(finding.evidence)
    found = re.search(r"does not depend on the sample: (?:\w+\.)*(\w+)", said)
    if found is None:
        raise NotPossible("the module behind which all samples are equal is not known")
    for source in desk.sources(finding):
        made = [
            node for node in source.all(cst.Assign)
            if isinstance(node.value, cst.Call) and NORMS.search(called_name(node.value))
            and source.code(node.targets[0].target) == f"self.{found[1]}"
        ]  # fmt: skip
        if len(made) == 1:
            norm = called_name(made[0].value) if isinstance(made[0].value, cst.Call) else ""
            source.replace(made[0].value, cst.parse_expression(f"{torch_nn(source)}.Identity()"))
            return f"line {source.first_line(made[0])} makes no {norm}: of each number it left nothing to tell samples apart"
    raise NotPossible("the module behind which all samples are equal is no norm that is made at one line")


def mask_the_other_way(source: Source, line: int) -> str:
    """The mask that attention is given in this line is turned round."""
    for call in calls_at(source, line):
        given = argument(call, None, "src_key_padding_mask", "key_padding_mask")
        if given is None or source.code(given.value) == "None":
            continue
        if isinstance(given.value, cst.UnaryOperation) and isinstance(given.value.operator, cst.BitInvert):
            source.replace(given.value, given.value.expression)
        else:
            rewrite_as(source, given.value, "~{x}", x=grouped(given.value))
        return f"the mask in line {source.first_line(call)} is given the other way round: True where attention must not look"
    raise NotPossible(f"{source.path.name}:{line} gives no mask by its name")
