"""trainsleuth explain: the page of a rule."""

from __future__ import annotations

import click

from trainsleuth.cli.output import stop


@click.command("explain")
@click.argument("rule", required=False)
def command(rule: str | None) -> None:
    """The page of a rule; without a name, the list of all rules."""
    from trainsleuth.rules.catalogue import all_rules, rule_named

    if rule is None:
        width = max(len(known.name) for known in all_rules())
        for known in sorted(all_rules(), key=lambda known: known.name):
            click.echo(f"{known.name:<{width}}  {known.page.splitlines()[0]}")
        return
    found = rule_named(rule)
    if found is None:
        near = [known.name for known in all_rules() if rule.split("/")[-1] in known.name]
        stop(
            f"there is no rule {rule}."
            + (f" Did you mean {', '.join(near[:3])}?" if near else " `trainsleuth explain` lists them.")
        )
    click.echo(f"{found.name}\n\n{found.page}")
