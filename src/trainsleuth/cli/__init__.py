"""The command line: one file a command, none with logic of its own; each is imported only when it is called."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from trainsleuth import __version__

COMMANDS = {
    "run": "run a program under observation",
    "attach": "what a running process is doing, and why it does not go on",
    "diagnose": "what was wrong with a run, from its log, its event files, its traceback or its case",
    "prove": "confirm or refute the suspected causes of a case by trials",
    "knobs": "what trials can change in a program",
    "fix": "the diff that cures a finding; --apply, --verify",
    "compare": "runs side by side, and which difference explains the outcome",
    "report": "print a case: terminal, Markdown or JSON",
    "explain": "the page of a rule",
    "cases": "list the cases of this folder",
    "demo": "watch a sick program be diagnosed, proved and cured",
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"trainsleuth.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trainsleuth")
def cli() -> None:
    """Why is this training run sick, and what cures it?

    \b
    trainsleuth run train.py --lr 1        or any command:  trainsleuth run -- torchrun … train.py
    """


def main() -> None:
    """Errors of the user's input end with one sentence and code 2."""
    from trainsleuth.case.folder import CaseError

    try:
        cli(standalone_mode=True)
    except CaseError as problem:
        click.echo(f"trainsleuth: {problem}", err=True)
        sys.exit(2)
