"""Find a symbol in a file and say exactly which lines it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from afd_patchkit.findings.errors import DeltaError, ManifestError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.source.syntax import CLAUSES, TRY, Block, blocks, own_parts
from afd_patchkit.source.text import SourceFile, Span

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
DefinitionNode = FunctionNode | ast.ClassDef
Node = DefinitionNode | ast.Assign | ast.AnnAssign

ACCESSORS = ("getter", "setter", "deleter")
"""Of a property, in the order of their importance."""
_JOINING = (*ACCESSORS, "register")


@dataclass(frozen=True, eq=False)
class Symbol:
    """One function, method, class or constant of one upstream file.

    A group that Python binds to one name (overloads and their implementation, a property and its setters) is one
    symbol with several nodes; the lines between its parts are not part of it.

    Attributes:
        file: the file it was found in; every span below is in that file's bytes.
        qualname: `Class.method`, `function` or `CONSTANT`; empty for a module as a whole, which only probes look at.
        nodes: its statements, in order.
        classes: the enclosing classes, outermost first.
        conditions: texts of the enclosing `if`/`try` headers at the level of definition, outermost first.
        accessor: the accessor of a property that the entry is about; `node` is that one then.
        beside: nodes of the group that were left out, since an entry is about one accessor only.
    """

    file: SourceFile
    qualname: str
    nodes: tuple[Node, ...]
    classes: tuple[ast.ClassDef, ...] = ()
    conditions: tuple[str, ...] = ()
    in_function: bool = False
    accessor: str | None = None
    beside: tuple[Node, ...] = ()

    @property
    def name(self) -> str:
        """The last part of the qualified name."""
        return self.qualname.rpartition(".")[2]

    @property
    def node(self) -> Node:
        """The implementing statement: the last one of a group, of a property the accessor that is meant."""
        return self.accessors[self.accessor] if self.accessor is not None else self.nodes[-1]

    @cached_property
    def accessors(self) -> dict[str, Node]:
        """The accessors of a property by their names, in order; empty for anything else."""
        if not any(_is_accessor(node, self.name) for node in self.nodes):
            return {}
        return {accessor_name(node): node for node in self.nodes}

    @property
    def reference(self) -> str:
        """`package.module:Qual.name`; of a module its name."""
        return f"{self.file.module}:{self.qualname}" if self.qualname else self.file.module

    @cached_property
    def line_ranges(self) -> tuple[tuple[int, int], ...]:
        """1-based inclusive lines of each node, decorators included; ranges that touch only blank lines are joined."""
        return tuple((self._first_line(node), node.end_lineno or node.lineno) for node in self.nodes)

    def _first_line(self, node: Node) -> int:
        line = first_line(node)
        if getattr(node, "decorator_list", None):
            while not self.file.lines(line, line)[0].lstrip(" \t\f").startswith("@"):
                line -= 1  # the decorator's expression starts below its `@`, in parentheses
        return line

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The bytes of each line range."""
        return tuple(self.file.line_span(*lines) for lines in self.line_ranges)

    @cached_property
    def data(self) -> bytes:
        """Upstream's bytes of the symbol (whole lines; ends with a newline)."""
        return b"".join(self.file.data[s.start : s.end] for s in self.spans).removesuffix(b"\n") + b"\n"

    @cached_property
    def indent(self) -> str:
        """Indentation of the symbol's first line (white space behind the last form feed, as Python counts it)."""
        line = self.file.lines(self.line_ranges[0][0], self.line_ranges[0][0])[0]
        return line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]

    @property
    def position(self) -> Position:
        """Where the symbol starts, for findings."""
        return Position(self.file.path, self.line_ranges[0][0], 1)


def accessor_name(node: Node) -> str:
    """`getter`, `setter` or `deleter`."""
    decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
    words = [dotted(d).rpartition(".")[2] for d in decorators]
    return next((word for word in words if word in _JOINING), "getter")


def first_line(node: ast.stmt) -> int:
    """The first line of a statement, decorators included."""
    decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
    return min([node.lineno, *(d.lineno for d in decorators)])


@dataclass(frozen=True, eq=False)
class Definition:
    """One statement that binds a name at module or class level."""

    name: str
    node: Node
    classes: tuple[ast.ClassDef, ...]
    conditions: tuple[str, ...]
    branch: tuple[int, ...] = field(default=())


def definitions(file: SourceFile, body: Sequence[ast.stmt] | None = None) -> Iterator[Definition]:
    """Every function, class and simple assignment at module and class level, branches of `if`/`try`/`with` included."""
    yield from _walk(file, file.tree.body if body is None else body, (), (), ())


def _walk(
    file: SourceFile,
    body: Sequence[ast.stmt],
    classes: tuple[ast.ClassDef, ...],
    conditions: tuple[str, ...],
    branch: tuple[int, ...],
) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Definition(node.name, node, classes, conditions, branch)
        elif isinstance(node, ast.ClassDef):
            yield Definition(node.name, node, classes, conditions, branch)
            yield from _walk(file, node.body, (*classes, node), conditions, branch)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield Definition(target.id, node, classes, conditions, branch)
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name):
                yield Definition(node.target.id, node, classes, conditions, branch)
        else:
            for number, block in enumerate(blocks(node)):
                header = _header(file, node, block)
                yield from _walk(file, block.body, classes, (*conditions, header), (*branch, node.lineno, number))


def _header(file: SourceFile, node: ast.stmt, block: Block) -> str:
    """A text that names a block of a compound statement."""
    if (word := CLAUSES.get(type(block.owner))) is not None:
        return " ".join([word, *(file.slice(file.node_span(part)) for part in own_parts(block.owner)[:1])])
    word = "try" if isinstance(node, TRY) else type(node).__name__.lower()
    opening = f"if {file.slice(file.node_span(node.test))}" if isinstance(node, ast.If) else word
    return {"body": opening, "orelse": f"else of {opening}", "finalbody": "finally"}[block.name]


def whole(file: SourceFile) -> Symbol:
    """A module as a symbol whose name is empty: every statement counts."""
    return Symbol(file, "", tuple(file.tree.body))  # type: ignore[arg-type]


def find_symbol(file: SourceFile, qualname: str, *, branch: int | str | None = None) -> Symbol:
    """The symbol `qualname` of `file`.

    Args:
        file: where to look.
        qualname: dotted path through classes.
        branch: which one when the name is defined in several branches: its 1-based number in the file, or a text that
            stands in the branch's condition (`else` for the `else` branch).

    Raises:
        DeltaError: no such symbol (PK205), or several and no `branch` (PK206), or `branch` fits none or several (PK206).
    """
    found = _candidates(file, qualname)
    if not found:
        raise DeltaError(_missing(file, qualname))
    groups = _groups(found)
    if branch is not None:
        groups = _choose(file, qualname, groups, branch)
    elif len(groups) > 1:
        raise DeltaError(_ambiguous(file, qualname, groups, "is defined in several places"))
    group = groups[0]
    return Symbol(file, qualname, tuple(d.node for d in group), group[0].classes, group[0].conditions)


def first_symbol(file: SourceFile, qualname: str) -> Symbol | None:
    """The first of the definitions of `qualname`; None when there is none."""
    return find_symbol(file, qualname, branch=1) if _candidates(file, qualname) else None


def every_symbol(file: SourceFile, qualname: str) -> list[Symbol]:
    """All definitions of `qualname`, each branch a symbol of its own.

    Raises:
        DeltaError: there is none (PK205).
    """
    groups = _groups(_candidates(file, qualname))
    if not groups:
        raise DeltaError(_missing(file, qualname))
    return [Symbol(file, qualname, tuple(d.node for d in g), g[0].classes, g[0].conditions) for g in groups]


def _candidates(file: SourceFile, qualname: str) -> list[Definition]:
    path = qualname.split(".")
    wanted = path[-1]
    return [d for d in _index(file).get(wanted, ()) if [c.name for c in d.classes] == path[:-1]]


def _index(file: SourceFile) -> dict[str, list[Definition]]:
    index: dict[str, list[Definition]] | None = file.__dict__.get("_definition_index")
    if index is None:
        index = {}
        for definition in definitions(file):
            index.setdefault(definition.name, []).append(definition)
        file.__dict__["_definition_index"] = index
    return index


def _groups(found: list[Definition]) -> list[list[Definition]]:
    """Join overloads with their implementation and properties with their accessors; keep others apart."""
    groups: list[list[Definition]] = []
    for definition in found:
        if groups:
            last = groups[-1][-1]
            same_place = last.branch == definition.branch and last.classes == definition.classes
            if same_place and (is_overload(last.node) or _is_accessor(definition.node, definition.name)):
                groups[-1].append(definition)
                continue
        groups.append([definition])
    return groups


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a chain of attributes on a name, else an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def is_overload(node: ast.AST) -> bool:
    """Whether a function is one of `typing.overload`, by whatever name the module has `typing`."""
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
        dotted(d).rpartition(".")[2] == "overload" for d in node.decorator_list
    )


def _is_accessor(node: Node, name: str) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
        dotted(d.func if isinstance(d, ast.Call) else d) in {f"{name}.{a}" for a in _JOINING}
        for d in node.decorator_list
    )


def _describe(file: SourceFile, group: list[Definition]) -> str:
    definition = group[0]
    where = " / ".join(definition.conditions) or "module or class level"
    return f"{file.path}:{first_line(definition.node)} ({where})"


def _ambiguous(file: SourceFile, qualname: str, groups: list[list[Definition]], why: str) -> Finding:
    return finding(
        "PK206",
        f"{file.module}:{qualname} {why} ({len(groups)})",
        upstream=Position(file.path, first_line(groups[0][0].node)) if groups else Position(file.path),
        details=tuple(f"branch {n}: {_describe(file, group)}" for n, group in enumerate(groups, 1)),
        help="Say which one in the entry: `branch: <number>`, or a text of its condition such as `branch: else`.",
    )


def _choose(
    file: SourceFile, qualname: str, groups: list[list[Definition]], branch: int | str
) -> list[list[Definition]]:
    if isinstance(branch, int):
        if 1 <= branch <= len(groups):
            return [groups[branch - 1]]
        raise DeltaError(_ambiguous(file, qualname, groups, f"has no branch {branch}"))

    def fits(group: list[Definition]) -> bool:
        if not group[0].conditions:
            return False
        condition = group[0].conditions[-1]
        return condition.startswith("else of") if branch == "else" else branch in condition

    chosen = [group for group in groups if fits(group)]
    if len(chosen) != 1:
        raise DeltaError(_ambiguous(file, qualname, groups, f"has {len(chosen)} branches that fit {branch!r}"))
    return chosen


def _missing(file: SourceFile, qualname: str) -> Finding:
    names = sorted({".".join([*(c.name for c in d.classes), d.name]) for d in definitions(file)})
    near = list(nearest(qualname, names))
    last = qualname.rpartition(".")[2]
    near += [n for n in names if n.rpartition(".")[2] == last and n not in near][:3]
    return finding(
        "PK205",
        f"{file.module} has no {qualname}",
        upstream=Position(file.path),
        details=tuple(f"near: {file.module}:{n}" for n in near),
        help="Correct the symbol." if near else "Check the module and the pin's version.",
    )


def which_accessor(symbol: Symbol, why: str) -> Finding:
    """The finding that lists the accessors of a property (PK226)."""
    found = symbol.accessors or {"getter": symbol.node}
    return finding(
        "PK226",
        f"{symbol.reference} {why}",
        upstream=symbol.position,
        details=tuple(f"{name}: {symbol.file.path}:{first_line(node)}" for name, node in found.items()),
        help=f"Say which one is meant: `accessor: {next(iter(found))}`.",
    )


def parse_reference(text: str, position: Position | None = None) -> tuple[str, str]:
    """Split `package.module:Qual.name`.

    Raises:
        ManifestError: the text is not of that form (PK006).
    """
    module, colon, qualname = text.partition(":")
    parts = [*module.split("."), *qualname.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise ManifestError(
            finding(
                "PK006",
                f"{text!r} is not a symbol",
                manifest=position,
                help="Write `package.module:Qual.name`, for instance `acme.engine:Engine.step`.",
            )
        )
    return module, qualname


def parse_place(text: str, position: Position | None = None) -> tuple[str, str]:
    """Split `package.module:Qual.name`, or `package.module`, whose qualified name is empty.

    Raises:
        ManifestError: the text is neither (PK006).
    """
    if ":" not in text and all(part.isidentifier() for part in text.split(".")):
        return text, ""
    return parse_reference(text, position)
