"""trainsleuth knobs: what trials can change in a program."""

from __future__ import annotations

import click


@click.command("knobs")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the knobs; with a name, the page of that knob."""
    from importlib.util import find_spec

    from trainsleuth.cli.output import stop
    from trainsleuth.trials.knobs import KNOBS

    if name is None:
        width = max(map(len, KNOBS))
        for knob in KNOBS.values():
            settles = f"   [{', '.join(knob.settles)}]" if knob.settles else ""
            click.echo(f"{knob.name:<{width}}  {knob.changes}{settles}")
        click.echo("\nYour own: prove CASE --knob NAME=--option=value, NAME=key=value (Hydra), NAME=ENV:VARIABLE=value")
        return
    if name not in KNOBS:
        stop(f"there is no knob {name}; `trainsleuth knobs` lists them.")
    knob = KNOBS[name]
    spec = find_spec(f"_trainsleuth_inside.knobs.{(knob.actuator or knob.name).replace('-', '_')}")
    page = _page(spec.origin) if spec is not None and spec.origin else ""
    click.echo(f"{knob.name}: {knob.changes}\n\n{page}")


def _page(path: str) -> str:
    """The docstring of an actuator, read without running it."""
    import ast
    from pathlib import Path

    return ast.get_docstring(ast.parse(Path(path).read_text(encoding="utf-8"))) or ""
