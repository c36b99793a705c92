"""Cures `checkpoint/weights-not-loaded`: the names in the file become those of the module, while they are loaded."""

from __future__ import annotations

import re

import libcst as cst

from trainsleuth.remedies.desk import Desk, Diagnosed
from trainsleuth.remedies.expressions import argument, calls_at, grouped
from trainsleuth.remedies.source import NotPossible

REMOVES, ADDS = re.compile(r"take ('[^']*') away"), re.compile(r"put ('[^']*') before")


def under_the_names_of_the_module(desk: Desk, finding: Diagnosed) -> str:
    for place in finding.where:
        removes, adds = REMOVES.search(place.note), ADDS.search(place.note)
        if removes is None and adds is None:
            continue
        source = desk.source(place.file)
        for call in calls_at(source, place.line, "load_state_dict"):
            given = argument(call, 0, "state_dict")
            if given is None:
                continue
            new = f"name.removeprefix({removes[1]})" if removes is not None else f"{adds[1]} + name" if adds is not None else "name"
            new = new.replace("'", '"')
            renamed = f"{{{new}: tensor for name, tensor in {source.code(grouped(given.value))}.items()}}"
            source.replace(given.value, cst.parse_expression(renamed))
            return f"the names are those of the module when line {place.line} loads them"
    raise NotPossible("no line loads a state dict under names that differ by a prefix")
