"""Writes the rule pages of docs/rules/ from the rules' docstrings; with --check it only says whether they are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from trainsleuth.rules.catalogue import all_rules
from trainsleuth.rules.kinds import Rule
from trainsleuth.trials.knobs import knob_for

HERE = Path(__file__).resolve().parent / "rules"
ZOO = Path(__file__).resolve().parent.parent / "zoo"


def page(rule: Rule) -> str:
    first, _, rest = rule.page.partition("\n")
    lines = [f"# {rule.name}", "", first, ""]
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            lines += ["", f"## {line}", ""]
        else:
            lines.append(line.strip())
    lines += [
        "",
        "## In the product",
        "",
        f"- kind: {rule.kind}, {'seen in the structure' if rule.structural else 'statistical'}",
    ]
    if rule.explains:
        lines.append("- explains: " + ", ".join(f"`{name}`" for name in rule.explains))
    knob = knob_for(rule.name)
    if knob is not None:
        lines.append(f"- `trainsleuth prove` settles it with the knob `{knob.name}`: {knob.changes}")
    specimens = sorted(path.name for path in (ZOO / rule.name.split("/")[0]).glob(f"{rule.name.split('/')[1]}*"))
    if specimens:
        lines.append("- in the zoo: " + ", ".join(f"`{rule.name.split('/')[0]}/{name}`" for name in specimens))
    text = "\n".join(lines) + "\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def pages() -> dict[Path, str]:
    rules = sorted(all_rules(), key=lambda rule: rule.name)
    made = {HERE / f"{rule.name.replace('/', '-')}.md": page(rule) for rule in rules}
    index = ["# The rules", "", "Made by `make docs` from the rules' own docstrings.", "", "| rule | what it says |", "|---|---|"]
    index += [f"| [{rule.name}]({rule.name.replace('/', '-')}.md) | {rule.page.splitlines()[0]} |" for rule in rules]
    made[HERE / "README.md"] = "\n".join(index) + "\n"
    return made


def main() -> int:
    made = pages()
    if "--check" in sys.argv:
        stale = [path.name for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        extra = [path.name for path in HERE.glob("*.md") if path not in made]
        if stale or extra:
            print(f"docs/rules is not up to date ({', '.join(stale + extra)}): run `make docs`")
            return 1
        return 0
    HERE.mkdir(exist_ok=True)
    for path in HERE.glob("*.md"):
        path.unlink()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    print(f"{len(made)} pages written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
