"""One source file as a syntax tree that can be searched by line and rewritten without touching what is not changed."""

from __future__ import annotations

import functools
import io
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import libcst as cst
from libcst import matchers as m
from libcst.metadata import CodeRange, MetadataWrapper, ParentNodeProvider, PositionProvider

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
Node = TypeVar("Node", bound=cst.CSTNode)
Change = Callable[[cst.CSTNode], "cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]"]

HARMLESS_CALLS = frozenset(
    [
        "parameters",
        "named_parameters",
        "modules",
        "named_modules",
        "children",
        "named_children",
        "keys",
        "values",
        "items",
        "split",
        "startswith",
        "endswith",
        "lower",
        "isinstance",
        "len",
        "enumerate",
        "list",
        "zip",
        "range",
        "any",
        "all",
        "hasattr",
        "getattr",
        "reversed",
        "chain",
    ]
)


class NotPossible(Exception):
    """No sound rewrite exists here; the message says why."""


@dataclass(frozen=True)
class Tree:
    """A syntax tree with the place and the parent of each node."""

    module: cst.Module
    positions: Mapping[cst.CSTNode, CodeRange]
    parents: Mapping[cst.CSTNode, cst.CSTNode]


@functools.lru_cache(maxsize=16)
def _tree(content: bytes) -> Tree:
    wrapper = MetadataWrapper(cst.parse_module(content), unsafe_skip_copy=True)
    return Tree(wrapper.module, wrapper.resolve(PositionProvider), wrapper.resolve(ParentNodeProvider))


@dataclass
class Source:
    """A parsed file and the changes that were decided so far."""

    path: Path
    original: bytes
    encoding: str
    tree: Tree
    changes: dict[cst.CSTNode, Change] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.module = self.tree.module
        self._positions = self.tree.positions
        self._parents = self.tree.parents

    # -- finding ---------------------------------------------------------------------------------------------------

    def span(self, node: cst.CSTNode) -> CodeRange:
        return self._positions[node]

    def first_line(self, node: cst.CSTNode) -> int:
        return int(self.span(node).start.line)

    def covers(self, node: cst.CSTNode, line: int) -> bool:
        span = self.span(node)
        return bool(span.start.line <= line <= span.end.line)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        found = self.parent(node)
        while found is not None:
            yield found
            found = self.parent(found)

    def enclosing(self, node: cst.CSTNode, kind: type[Node]) -> Node | None:
        return next((found for found in self.above(node) if isinstance(found, kind)), None)

    def all(self, kind: type[Node], below: cst.CSTNode | None = None) -> list[Node]:
        return [node for node in everything(below or self.module) if isinstance(node, kind)]

    def statement_at(self, line: int) -> Statement:
        """The innermost statement that the line belongs to."""
        found = [node for node in everything(self.module) if isinstance(node, Statement) and self.covers(node, line)]
        if not found:
            raise NotPossible(f"there is no statement at {self.path.name}:{line}")
        return found[-1]

    def statement_of(self, node: cst.CSTNode) -> Statement:
        if isinstance(node, Statement):
            return node
        found = next((above for above in self.above(node) if isinstance(above, Statement)), None)
        if found is None:
            raise NotPossible("an expression outside of any statement")
        return found

    def block_of(self, statement: Statement) -> list[Statement]:
        """The statements of the block that it stands in, itself included."""
        block = self.parent(statement)
        body = getattr(block, "body", ())
        return [entry for entry in body if isinstance(entry, Statement)] if not isinstance(body, cst.CSTNode) else [statement]

    def code(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node).strip()

    def function_named(self, name: str) -> list[cst.FunctionDef]:
        return [node for node in self.all(cst.FunctionDef) if node.name.value == name]

    # -- changing --------------------------------------------------------------------------------------------------

    def replace(self, node: cst.CSTNode, by: cst.CSTNode) -> None:
        self.edit(node, lambda _: by)

    def edit(self, node: cst.CSTNode, change: Change) -> None:
        """Change a node, on top of what was decided for it before."""
        earlier = self.changes.get(node)
        self.changes[node] = change if earlier is None else lambda updated: _one_after_the_other(updated, earlier, change)

    def remove(self, node: cst.CSTNode) -> None:
        """Take a statement out, and with it every loop, branch and condition that has nothing left to do."""
        gone: set[cst.CSTNode] = set()
        while True:
            gone.add(node)
            holder = self._holder(node)
            if holder is None or not self._idle(holder, gone):
                break
            node = holder
        if isinstance(node, cst.Else):
            self._drop_else(node)
            return
        self._take_out(node)

    def _holder(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The next thing outwards that exists only for what it holds."""
        for above in self.above(node):
            if isinstance(above, (cst.SimpleStatementLine, cst.If, cst.Else, cst.For)):
                return above
            if not isinstance(above, (cst.IndentedBlock, cst.SimpleStatementSuite)):
                return None
        return None

    def _idle(self, node: cst.CSTNode, gone: set[cst.CSTNode]) -> bool:
        """Whether a statement does nothing once the ones in `gone` are out."""
        if node in gone or isinstance(node, (cst.Pass, cst.Continue)):
            return True
        if isinstance(node, cst.SimpleStatementLine):
            return all(self._idle(part, gone) for part in node.body)
        if isinstance(node, (cst.IndentedBlock, cst.SimpleStatementSuite)):
            return all(self._idle(part, gone) for part in node.body)
        if isinstance(node, cst.Else):
            return self._idle(node.body, gone)
        if isinstance(node, cst.If):
            rest = node.orelse is None or self._idle(node.orelse, gone)
            return rest and harmless(node.test) and self._idle(node.body, gone)
        if isinstance(node, cst.For):
            return node.orelse is None and harmless(node.iter) and self._idle(node.body, gone)
        return False

    def _drop_else(self, node: cst.Else) -> None:
        owner = self.parent(node)
        assert owner is not None
        self.changes[owner] = lambda updated: updated.with_changes(orelse=None)

    def _take_out(self, node: cst.CSTNode) -> None:
        owner = self.parent(node)
        if isinstance(node, cst.If) and isinstance(owner, cst.If) and owner.orelse is node:
            rest = node.orelse  # an elif goes, what comes after it stays
            if isinstance(rest, cst.If) and rest in self.changes:
                raise NotPossible("two changes in one chain of conditions")
            self.changes[owner] = lambda updated: updated.with_changes(orelse=rest)
            return
        if isinstance(node, cst.BaseSmallStatement) and owner is not None and len(getattr(owner, "body", ())) == 1:
            if isinstance(owner, cst.SimpleStatementSuite):
                self.replace(node, cst.Pass())
                return
            node = owner
        self.changes[node] = lambda _: cst.RemoveFromParent()

    def after(self, statement: Statement, *lines: str) -> None:
        added = [self._line(text) for text in lines]
        self.edit(statement, lambda updated: cst.FlattenSentinel([updated, *added]))

    def before(self, statement: Statement, *lines: str) -> None:
        added = [self._line(text) for text in lines]

        def put(updated: cst.CSTNode) -> cst.FlattenSentinel[cst.CSTNode]:
            empty = [entry for entry in getattr(updated, "leading_lines", ()) if entry.comment is None]
            kept = [entry for entry in getattr(updated, "leading_lines", ()) if entry.comment is not None]
            first = added[0].with_changes(leading_lines=empty)
            return cst.FlattenSentinel([first, *added[1:], updated.with_changes(leading_lines=kept)])

        self.edit(statement, put)

    def move_below(
        self, moved: list[Statement], below: Statement, edit: Callable[[cst.CSTNode], cst.CSTNode] | None = None
    ) -> None:
        """Take statements out of their places and put them behind another one of the same block."""
        edited = [edit(statement) if edit else statement for statement in moved]
        for statement in moved:
            self.changes[statement] = lambda _: cst.RemoveFromParent()
        self.changes[below] = lambda updated: cst.FlattenSentinel([updated, *edited])

    def _line(self, text: str) -> Statement:
        return cst.parse_statement(text, config=self.module.config_for_parsing)

    def rewritten(self) -> bytes:
        """The file with its changes, in its own encoding and newlines; it is certain to compile."""
        new = self.module.visit(_Rewriter(self.changes))
        assert isinstance(new, cst.Module)
        content = new.bytes
        try:
            compile(content, str(self.path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as problem:
            raise NotPossible(f"the rewrite of {self.path.name} would not compile: {problem}") from problem
        if content == self.original:
            raise NotPossible("the rewrite changes nothing")
        return content


def _one_after_the_other(updated: cst.CSTNode, first: Change, second: Change) -> Any:
    """The second change applies to what the first one made of the node itself, not to lines that it put around it."""
    made = first(updated)
    if isinstance(made, cst.CSTNode):
        return second(made)
    if isinstance(made, cst.RemovalSentinel):
        raise NotPossible("two changes in one statement")
    nodes = list(made)
    at = next((index for index, node in enumerate(nodes) if node is updated), len(nodes) - 1)
    again = second(nodes[at])
    if isinstance(again, cst.RemovalSentinel):
        raise NotPossible("two changes in one statement")
    nodes[at : at + 1] = [again] if isinstance(again, cst.CSTNode) else list(again)
    return cst.FlattenSentinel(nodes)


class _Rewriter(cst.CSTTransformer):
    def __init__(self, changes: dict[cst.CSTNode, Change]) -> None:
        super().__init__()
        self._changes = changes

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        change = self._changes.get(original_node)
        return updated_node if change is None else change(updated_node)  # type: ignore[return-value]


def read(path: Path) -> Source:
    """Parse a file of the user's; a library's file is not ours to change."""
    if any(part in ("site-packages", "dist-packages") for part in path.parts):
        raise NotPossible(f"{path} belongs to a library")
    try:
        content = path.read_bytes()
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        tree = _tree(content)
    except OSError as problem:
        raise NotPossible(f"{path} cannot be read: {problem.strerror}") from problem
    except (SyntaxError, UnicodeDecodeError, cst.ParserSyntaxError) as problem:
        raise NotPossible(f"{path} cannot be parsed: {problem}") from problem
    return Source(path, content, encoding, tree)


def everything(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it, outer before inner, in the order of the source."""
    yield node
    for child in node.children:
        yield from everything(child)


def names_in(node: cst.CSTNode) -> set[str]:
    return {found.value for found in everything(node) if isinstance(found, cst.Name)}


def harmless(expression: cst.CSTNode) -> bool:
    """Whether computing it can be left out: comparisons, look-ups, and calls that only look."""
    for node in everything(expression):
        if isinstance(node, (cst.Await, cst.Yield, cst.NamedExpr, cst.Lambda)):
            return False
        if isinstance(node, cst.Call) and called_name(node) not in HARMLESS_CALLS:
            return False
    return True


def called_name(call: cst.Call) -> str:
    """The last part of what is called: `step` of `self.optimizer.step()`."""
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value
    return call.func.value if isinstance(call.func, cst.Name) else ""


def is_method_call(node: cst.CSTNode, name: str) -> bool:
    return m.matches(node, m.Call(func=m.Attribute(attr=m.Name(name))))
