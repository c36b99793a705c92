"""The house stands as the design says: imports point one way, start-up is light, and each rule has its page and its programs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainsleuth.rules.catalogue import MODULES, all_rules
from trainsleuth.rules.kinds import Rule

ROOT = Path(__file__).resolve().parent.parent
INSIDE = ROOT / "src" / "_trainsleuth_inside"
PACKAGE = ROOT / "src" / "trainsleuth"
ORDER = (
    "_trainsleuth_inside", "readers", "case", "rules", "trials", "remedies", "report", "postmortem", "supervise", "demonstrate", "cli",
)  # fmt: skip
HEADINGS = ("What it detects", "Why it matters", "How it is confirmed", "How to cure it", "When it is wrong")
SYMPTOMS = (
    "stall/flat-loss",
    "nan/loss-not-finite",
    "crash/exception",
    "hang/backward",
    "hang/standstill",
)  # seen in many programs of the zoo, at home in none
NO_PROGRAM = ("hang/two-openmp-runtimes",)  # no program was found that hangs by this alone, each time
WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; "


def imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Each module that is imported, and whether that happens when the file itself is imported."""
    inner = {id(node) for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or "", id(node) not in inner
        elif isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, id(node) not in inner


def part_of(module: str) -> str | None:
    first, _, rest = module.partition(".")
    return first if first == ORDER[0] else rest.partition(".")[0] if first == "trainsleuth" else None


@pytest.mark.parametrize("part", [part for part in ORDER if part != "_trainsleuth_inside"])
def test_nothing_to_the_left_imports_from_the_right(part: str) -> None:
    for path in [*(PACKAGE / part).rglob("*.py"), *PACKAGE.glob(f"{part}.py")]:
        for module, _ in imports(ast.parse(path.read_text(encoding="utf-8"))):
            other = part_of(module)
            if other:
                assert other in ORDER, f"{path}: {module} has no place in the order of the house"
                assert ORDER.index(other) <= ORDER.index(part), f"{path.relative_to(ROOT)} imports {module}"


def test_every_part_of_the_package_has_its_place() -> None:
    parts = {path.stem for path in PACKAGE.iterdir() if (path / "__init__.py").is_file() or path.suffix == ".py"}
    assert parts - {"__init__", "__main__"} == set(ORDER) - {"_trainsleuth_inside"}


def test_what_goes_inside_stands_alone() -> None:
    """Standard library and itself only, torch only where torch is there already, and no syntax that an older Python lacks."""
    for path in INSIDE.rglob("*.py"):
        for module, at_once in imports(ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))):
            first = module.partition(".")[0]
            allowed = first in sys.stdlib_module_names or first == "_trainsleuth_inside" or (first == "torch" and not at_once)
            assert allowed, f"{path.relative_to(ROOT)} imports {module}"


def test_rules_do_no_input_and_output() -> None:
    """A rule is a function of a chart; only the one that reads the user's source opens files."""
    for name in MODULES:
        path = PACKAGE / "rules" / f"{name.replace('.', '/')}.py"
        found = {module.partition(".")[0] for module, _ in imports(ast.parse(path.read_text(encoding="utf-8")))}
        assert not found & {"os", "pathlib", "subprocess", "time", "random", "torch"}, f"{path} imports {found}"


@pytest.mark.parametrize(
    "code",
    ["import trainsleuth; print(trainsleuth.__version__)", "from trainsleuth.cli import cli; cli(['--help'])",
     "from trainsleuth.cli import cli; cli(['explain'])", "from trainsleuth.cli import cli; cli(['run', '--help'])"],
)  # fmt: skip
def test_it_answers_without_torch(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH + code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_help_imports_nothing_slow() -> None:
    code = "from trainsleuth.cli import cli; cli(['--help'], standalone_mode=False); import sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"torch", "rich", "libcst", "numpy", "trainsleuth.rules.arbiter"} & set(done.stderr.split())


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_each_rule_has_its_page_and_its_programs(rule: Rule) -> None:
    family, fault = rule.name.split("/")
    lines = rule.page.splitlines()
    found = [heading for heading in HEADINGS if heading in lines]
    assert found == list(HEADINGS), "the docstring has the same headings as all others"
    assert (ROOT / "docs" / "rules" / f"{family}-{fault}.md").is_file()
    if rule.of_record:
        assert (ROOT / "tests" / "corpus" / "sick" / f"{family}-{fault}.log").is_file()
    elif rule.name not in SYMPTOMS + NO_PROGRAM:
        homes = [home for home in (ROOT / "zoo" / family).iterdir() if home.name.partition("--")[0] == fault]
        assert any((home / "sick.py").is_file() and (home / "cured.py").is_file() for home in homes)


def test_each_rule_is_in_the_catalogue() -> None:
    files = {f"{path.parent.name}.{path.stem}" for path in (PACKAGE / "rules").glob("*/*.py") if path.stem != "__init__"}
    assert files == set(MODULES)
    assert len({rule.name for rule in all_rules()}) == len(MODULES)
    for name, rule in zip(MODULES, all_rules()):
        assert rule.name == name.replace(".", "/").replace("_", "-")
