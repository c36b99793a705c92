"""A sick program that is rewritten by machine, and computes the same, gets the same finding at the same line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rewriting import Rewritten, disguise, what_differs, without_lines_of_code, wrap

from watching import ZOO, ForkServer, Watched

ALL = bool(os.environ.get("TRAINSLEUTH_ALL_REWRITES"))
SPREAD = 8
SICK = sorted(toml.parent for toml in ZOO.glob("*/*/case.toml") if toml.parent.parent.name not in ("hang", "ranks"))


def _spread(programs: list[Path], count: int) -> list[Path]:
    """One program per rule, and of those a few from one end of the catalogue to the other."""
    if ALL:
        return programs
    one_per_rule = list({program.name.split("--")[0]: program for program in reversed(programs)}.values())[::-1]
    return one_per_rule[:: max(1, -(-len(one_per_rule) // count))]


def _name(program: Path) -> str:
    return f"{program.parent.name}/{program.name}"


_originals: dict[Path, Watched] = {}


def _original(server: ForkServer, script: Path, folder: Path) -> Watched:
    if script not in _originals:
        _originals[script] = server.run(script, folder, cwd=folder.parent)
    return _originals[script]


def _check(server: ForkServer, folder: Path, program: Path, rewritten: Rewritten) -> None:
    original = _original(server, program / "sick.py", folder / "original")
    script = folder / "program.py"
    script.write_text(rewritten.source)
    for beside in program.iterdir():  # what it imports and reads
        if not (folder / beside.name).exists():
            (folder / beside.name).symlink_to(beside)
    watched = server.run(script, folder / "case")
    assert without_lines_of_code(watched.output) == without_lines_of_code(original.output), "it is no longer the same program"
    difference = what_differs(original.findings, rewritten, watched.findings)
    assert difference is None, f"{difference}\n{watched.why()}\n{rewritten.source}"


@pytest.mark.parametrize("program", _spread(SICK, SPREAD), ids=_name)
def test_a_disguise_changes_nothing(program: Path, server: ForkServer, tmp_path: Path) -> None:
    rewritten = disguise((program / "sick.py").read_text())
    assert "names_changed" in rewritten.applied
    _check(server, tmp_path, program, rewritten)


def _wrappable(programs: list[Path]) -> list[Path]:
    return [program for program in programs if wrap((program / "sick.py").read_text()).applied]


@pytest.mark.parametrize("program", _wrappable(_spread(SICK, SPREAD // 2)), ids=_name)
def test_a_model_inside_another_module_changes_nothing(program: Path, server: ForkServer, tmp_path: Path) -> None:
    rewritten = wrap((program / "sick.py").read_text())
    _check(server, tmp_path, program, rewritten)


def test_a_rewritten_line_is_traced_to_the_line_it_came_from() -> None:
    source = (
        "import torch\nfrom torch import nn\n\n\ndef main():\n    model = nn.Linear(\n        2, 3,\n    )\n"
        "    loss_fn = nn.CrossEntropyLoss()\n    print(list(model.parameters()))\n\n\nmain()\n"
    )
    rewritten = disguise(source)
    assert rewritten.applied == ("losses_swapped", "parameters_by_hand", "loop_in_a_class", "names_changed")
    lines = rewritten.source.splitlines()
    built = next(number for number, line in enumerate(lines, 1) if "nn.Linear" in line)
    printed = next(number for number, line in enumerate(lines, 1) if "named_parameters" in line)
    assert rewritten.stands_for(built, {7})
    assert rewritten.origins[printed] == {10}
    assert "loss_fn" not in rewritten.source
