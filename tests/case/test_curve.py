"""What a curve tells of its own parts."""

from __future__ import annotations

import random

import pytest

from trainsleuth.case.curve import Curve


def curve(values: list[float], a_row: int) -> Curve:
    made = Curve()
    for at in range(0, len(values), a_row):
        part = values[at : at + a_row]
        made.add(at + len(part), len(part), sum(part) / len(part), min(part), max(part), part[-1])
    return made


@pytest.mark.parametrize("a_row", [1, 5, 20, 50, 100])
def test_the_error_of_a_part_does_not_depend_on_how_many_rows_were_written(a_row: int) -> None:
    errors = []
    for seed in range(20):
        chance = random.Random(seed)
        values = [0.7 + chance.gauss(0, 0.1) for _ in range(400)]
        _, error, count = curve(values, a_row).between(0.25, 0.5)
        assert count == 100
        errors.append(error)
    assert min(errors) > 0.005  # the true one is 0.1 / sqrt(100)
    assert max(errors) < 0.02
