"""The two files as libcst reads them: independent of `ast`, and of the Python that runs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

_STRINGS = (cst.SimpleString, cst.FormattedString, cst.TemplatedString)
_FEED = re.compile(r"^[ \t\f]*\f", re.MULTILINE)
# the fields of compound statements and clauses that hold statements, from the last one back
_SUITES = ("finalbody", "orelse", "handlers", "cases", "body")


def parse(text: str) -> cst.Module:
    """The tree of a file; form feeds in indentation, which libcst drops or stumbles over, are left out.

    Raises:
        libcst.ParserSyntaxError: libcst cannot read it.
    """
    return cst.parse_module(_FEED.sub("", text) if "\f" in text else text)


@dataclass(frozen=True)
class CstDefinition:
    """A statement, and the indentation that blocks have in its file when their nodes do not say."""

    node: cst.CSTNode
    indent: str

    def equals(self, other: CstDefinition) -> bool:
        """Whether both are the same in all but the comments and blank lines above and below."""
        one, two = bare(self.node), bare(other.node)
        if self.indent != other.indent:
            one, two = one.visit(_Explicit(self.indent)), two.visit(_Explicit(other.indent))  # type: ignore[assignment]
        return one.deep_equals(two)


class _Explicit(cst.CSTTransformer):
    """Says in each block what its indentation is."""

    def __init__(self, indent: str) -> None:
        super().__init__()
        self.indent = indent

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node if updated_node.indent is not None else updated_node.with_changes(indent=self.indent)


@lru_cache(maxsize=4)
def definitions(text: str) -> dict[str, list[CstDefinition]]:
    """The statements of an upstream file that define a name at module or class level, by qualified name, in order.

    Raises:
        libcst.ParserSyntaxError: libcst cannot read it.
    """
    module = parse(text)
    found: dict[str, list[cst.CSTNode]] = defaultdict(list)
    _define(module.body, "", found)
    return {name: [CstDefinition(node, module.default_indent) for node in nodes] for name, nodes in found.items()}


def _define(body: Sequence[cst.CSTNode], prefix: str, found: dict[str, list[cst.CSTNode]]) -> None:
    for node in body:
        for name in names_of(node):
            found[prefix + name].append(node)
        if isinstance(node, cst.ClassDef):
            _define(node.body.body, f"{prefix}{node.name.value}.", found)
        elif not isinstance(node, cst.FunctionDef):
            for suite in _suites(node):
                _define(suite.body, prefix, found)


def _suites(node: cst.CSTNode) -> Iterator[cst.BaseSuite]:
    """The suites of a compound statement, those of its clauses too."""
    for name in reversed(_SUITES):
        held = getattr(node, name, None)
        for one in held if isinstance(held, Sequence) else [held]:
            if isinstance(one, cst.BaseSuite):
                yield one
            elif isinstance(one, cst.CSTNode) and not isinstance(node, cst.BaseSuite):
                yield from _suites(one)


def names_of(node: cst.CSTNode) -> list[str]:
    """The names that a definition or a simple assignment binds."""
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        return [node.name.value]
    names: list[str] = []
    for small in node.body if isinstance(node, cst.SimpleStatementLine) else ():
        targets = [t.target for t in small.targets] if isinstance(small, cst.Assign) else []
        targets += [small.target] if isinstance(small, cst.AnnAssign) else []
        names += [target.value for target in targets if isinstance(target, cst.Name)]
    return names


def statement(text: str) -> CstDefinition | None:
    """The one statement that `text` is, at whatever indentation; None when it is not one statement.

    Raises:
        libcst.ParserSyntaxError: libcst cannot read it.
    """
    indented = _FEED.sub("", text)[:1] in (" ", "\t")
    module = parse("if 1:\n" + text if indented else text)
    body: Sequence[cst.CSTNode] = module.body
    if indented:
        block = module.body[0].body
        assert isinstance(block, cst.IndentedBlock)
        body = block.body if len(module.body) == 1 else ()
    return CstDefinition(body[0], module.default_indent) if len(body) == 1 else None


def bare(node: cst.CSTNode) -> cst.CSTNode:
    """A statement without the comments and blank lines above and below it."""
    return _without_end(node.with_changes(leading_lines=()))


def _without_end(node: cst.CSTNode) -> cst.CSTNode:
    """A statement, clause or block without what stands below its last statement."""
    if isinstance(node, (cst.BaseSmallStatement, cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        return node
    changes: dict[str, object] = {"footer": ()} if hasattr(node, "footer") else {}
    for name in _SUITES:
        held = getattr(node, name, None)
        if isinstance(held, cst.CSTNode):
            return node.with_changes(**changes, **{name: _without_end(held)})
        if held:
            return node.with_changes(**changes, **{name: [*held[:-1], _without_end(held[-1])]})
    return node.with_changes(**changes)


def between(above: cst.CSTNode, below: cst.CSTNode) -> str:
    """The comments and blank lines between two statements."""
    code = cst.Module([]).code_for_node
    lead = getattr(below, "leading_lines", ())
    return code(above.with_changes(leading_lines=())).removeprefix(code(bare(above))) + "".join(
        code(line) for line in lead
    )


@dataclass(frozen=True, slots=True)
class CstPlace:
    """A definition in a generated module: 1-based lines, decorators included, and the comment lines above it."""

    node: cst.CSTNode
    first: int
    last: int
    above: tuple[str, ...]


@dataclass
class GeneratedTree:
    """A generated module.

    Attributes:
        lines: its lines, with their ends.
        body: its statements.
        indent: as for `CstDefinition`.
        fences: line number to `START` or `END` and the name.
        comments: numbers and columns of lines that hold a comment and nothing else.
        in_string: numbers of lines that begin inside a string.
        places: its definitions, by generated class (None at module level) and name.
    """

    lines: list[str]
    body: Sequence[cst.CSTNode]
    indent: str
    fences: dict[int, tuple[str, str]] = field(default_factory=dict)
    comments: dict[int, int] = field(default_factory=dict)
    in_string: set[int] = field(default_factory=set)
    places: dict[tuple[str | None, str], list[CstPlace]] = field(default_factory=lambda: defaultdict(list))


def read_generated(text: str, marker: str) -> GeneratedTree:
    """A generated module as libcst sees it.

    Raises:
        libcst.ParserSyntaxError: libcst cannot read it.
    """
    wrapper = MetadataWrapper(parse(text), unsafe_skip_copy=True)
    tree = GeneratedTree(re.findall(r"[^\n]*\n|[^\n]+", text), wrapper.module.body, wrapper.module.default_indent)
    shape = re.compile(rf"# {re.escape(marker)} (START|END): (.*)")
    positions = wrapper.resolve(PositionProvider)
    for node, where in positions.items():
        if isinstance(node, cst.EmptyLine) and node.comment is not None:
            number = where.start.line
            line = tree.lines[number - 1]
            tree.comments[number] = len(line) - len(line.lstrip())
            fence = shape.fullmatch(node.comment.value)
            if fence:
                tree.fences[number] = (fence[1], fence[2])
        elif isinstance(node, _STRINGS) and where.end.line > where.start.line:
            tree.in_string.update(range(where.start.line + 1, where.end.line + 1))

    def place(node: cst.CSTNode, group: str | None) -> None:
        inside: dict[str, list[cst.CSTNode]] = defaultdict(list)
        if not names_of(node):  # a delta may have put a condition around a constant
            _define([node], "", inside)
        for name in names_of(node) or inside:
            decorators = getattr(node, "decorators", ())
            first = positions[decorators[0] if decorators else node].start.line
            above = tuple(line.comment.value for line in getattr(node, "leading_lines", ()) if line.comment)
            tree.places[group, name].append(CstPlace(node, first, positions[node].end.line, above))

    for node in wrapper.module.body:
        place(node, None)
        if isinstance(node, cst.ClassDef):
            for member in node.body.body:
                place(member, node.name.value)
    return tree
