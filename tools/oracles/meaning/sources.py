"""The text of a release, module by module, and a release that differs from it in a few of them; and where names are bound."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

ROOT = "vllm"
"""The import package that is changed."""


@dataclass(frozen=True)
class Site:
    """One top-level statement that binds a name.

    Attributes:
        node: the statement.
        typing: only type checkers see it.
        plain: nothing stands around it.
    """

    node: ast.stmt
    typing: bool
    plain: bool


class Listing:
    """One module: its text, its tree, and what it binds.

    Attributes:
        module: dotted name.
        text: its text.
        package: whether it is an `__init__.py`.
        names: name to the statements that bind it, in order.
        stars: absolute modules that everything is imported from.
    """

    def __init__(self, module: str, text: str, *, package: bool) -> None:
        self.module, self.text, self.package = module, text, package
        self.names: dict[str, list[Site]] = {}
        self.stars: list[str] = []
        self._collect(self.tree.body, typing=False, plain=True)

    @cached_property
    def tree(self) -> ast.Module:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(self.text)

    @cached_property
    def starts(self) -> list[int]:
        """Character offset of the start of each line."""
        found = [0]
        for line in self.text.split("\n"):
            found.append(found[-1] + len(line) + 1)
        return found

    def offset(self, line: int, column: int) -> int:
        """Character offset of a 1-based line and a byte column."""
        start = self.starts[line - 1]
        text = self.text[start : self.starts[line] - 1]
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Character offsets of a node, decorators aside."""
        assert isinstance(node, (ast.stmt, ast.expr, ast.arg, ast.alias))
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def _collect(self, body: Sequence[ast.stmt], *, typing: bool, plain: bool) -> None:
        for node in body:
            for name in _bound(node):
                self.names.setdefault(name, []).append(Site(node, typing, plain))
            if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
                self.stars.append(self.absolute(node))
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                hidden = not isinstance(node.test, ast.UnaryOp)
                self._collect(node.body, typing=typing or hidden, plain=False)
                self._collect(node.orelse, typing=typing or not hidden, plain=False)
            else:
                for name in ("body", "orelse", "finalbody") if not isinstance(node, _DEFINITION) else ():
                    self._collect(getattr(node, name, []), typing=typing, plain=False)
                for handler in getattr(node, "handlers", ()):
                    self._collect(handler.body, typing=typing, plain=False)

    def absolute(self, node: ast.ImportFrom) -> str:
        """The module that an import names."""
        if not node.level:
            return node.module or ""
        parts = self.module.split(".")
        parts = parts[: len(parts) - node.level + self.package]
        return ".".join([*parts, node.module] if node.module else parts)


_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, _DEFINITION):
        yield node.name
    elif isinstance(node, ast.Import):
        yield from (a.asname or a.name.partition(".")[0] for a in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (a.asname or a.name for a in node.names if a.name != "*")
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    elif isinstance(node, (ast.For, ast.With)):
        heads = [node.target] if isinstance(node, ast.For) else [i.optional_vars for i in node.items if i.optional_vars]
        for head in heads:
            yield from (n.id for n in ast.walk(head) if isinstance(n, ast.Name))


@dataclass
class Sources:
    """A release.

    Attributes:
        paths: module to path.
        read: gives the text of a module.
        changed: modules whose text differs from what `read` gives, new ones included.
        base: the release that has the others.
    """

    paths: Mapping[str, str]
    read: Callable[[str], str]
    changed: Mapping[str, str] = field(default_factory=dict)
    base: Sources | None = None
    _listings: dict[str, Listing] = field(default_factory=dict, repr=False)

    def has(self, module: str) -> bool:
        """Whether there is such a module."""
        return module in self.paths or module in self.changed

    def listing(self, module: str) -> Listing:
        """One module, parsed once."""
        if self.base is not None and module not in self.changed:
            return self.base.listing(module)
        found = self._listings.get(module)
        if found is None:
            text = self.changed[module] if module in self.changed else self.read(module)
            package = self.paths.get(module, "").endswith("__init__.py")
            found = self._listings[module] = Listing(module, text, package=package)
        return found

    def with_changes(self, changed: Mapping[str, str]) -> Sources:
        """The same release but for some modules."""
        return Sources(self.paths, self.read, changed, self)
