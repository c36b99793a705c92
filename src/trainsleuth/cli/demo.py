"""trainsleuth demo: watch a sick program be diagnosed, proved and cured."""

from __future__ import annotations

import click


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave the folder of the demo where it is, to look around in it.")
def command(keep: bool) -> None:
    """The case study of the first field report: a loss that sits still from the first step to the last.

    Runs the sick program under observation, proves the suspected cause, writes the patch, verifies it, and shows both curves.
    """
    from trainsleuth.demonstrate import demonstrate

    raise SystemExit(demonstrate(keep))
