"""The Python files of a tree, and the functions in them; nothing is imported or run."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from afd_patchkit.copies.marks import Claims, HandFence, claims_above, comments_of, fence_mark, fences_of
from afd_patchkit.files import read_regular
from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.source.locate import FunctionNode, first_line
from afd_patchkit.source.syntax import DEFINITION, FUNCTION, blocks
from afd_patchkit.source.text import SourceFile, load_source

_SKIPPED = {"__pycache__", "node_modules", "build", "dist", "site-packages"}
_LARGEST = 20_000_000


@dataclass(frozen=True, eq=False)
class HandFile:
    """One file of the user's.

    Attributes:
        path: the file.
        shown: how findings name it.
        source: its normalised text; its module is what it is imported as.
    """

    path: Path
    shown: str
    source: SourceFile

    def at(self, line: int, column: int = 1) -> Position:
        """A place in it."""
        return Position(self.shown, line, column)

    def place(self, node: ast.AST) -> Position:
        """Where a node begins."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        return self.at(line, self.source.column_of(self.source.offset(line, column)))

    @cached_property
    def functions(self) -> tuple[HandFunction, ...]:
        """Every function of the file, at any depth, in order."""
        return tuple(_functions(self, self.source.tree.body, (), ()))


@dataclass(frozen=True, eq=False)
class HandFunction:
    """One function of the user's.

    Attributes:
        file: where it stands.
        node: its definition.
        classes: the classes around it, outermost first, as far as no function stands between.
        functions: the functions around it, outermost first.
    """

    file: HandFile
    node: FunctionNode
    classes: tuple[ast.ClassDef, ...]
    functions: tuple[FunctionNode, ...]

    @property
    def qualname(self) -> str:
        """`Class.method`; a function inside another stands behind that one's name."""
        return ".".join([*(f.name for f in self.functions), *(c.name for c in self.classes), self.node.name])

    @property
    def lines(self) -> tuple[int, int]:
        """First (of its decorators) and last line."""
        return first_line(self.node), self.node.end_lineno or self.node.lineno

    @property
    def position(self) -> Position:
        """Where its name is defined."""
        return self.file.place(self.node)

    @cached_property
    def fences(self) -> tuple[HandFence, ...]:
        """The fences in it; those of a function inside it that has comments of its own are that one's."""
        first, last = self.lines
        inner = [f.lines for f in self.file.functions if self.node in f.functions and f.claims.said]
        found = fences_of(self.file.source, first, _footer(self.file.source, last, self.node.col_offset))
        return tuple(f for f in found if not any(a <= f.start <= b for a, b in inner))

    @cached_property
    def claims(self) -> Claims:
        """What the comments above it say."""
        return claims_above(self.file.source, self.lines[0])


def _footer(source: SourceFile, last: int, column: int) -> int:
    """The last of the comment lines below a body that are indented as it is: the END of a fence may be there."""
    line = last + 1
    while line <= source.line_count:
        text = source.lines(line, line)[0]
        plain = text.lstrip()
        if plain and not (plain.startswith("#") and len(text) - len(plain) > column):
            break
        last = line if plain else last
        line += 1
    return last


def _functions(
    file: HandFile,
    body: Sequence[ast.stmt],
    classes: tuple[ast.ClassDef, ...],
    functions: tuple[FunctionNode, ...],
) -> Iterator[HandFunction]:
    for node in body:
        if isinstance(node, FUNCTION):
            yield HandFunction(file, node, classes, functions)
            yield from _functions(file, node.body, (), (*functions, node))
        elif isinstance(node, ast.ClassDef):
            yield from _functions(file, node.body, (*classes, node), functions)
        else:
            for block in blocks(node):
                yield from _functions(file, block.body, classes, functions)


def python_files(path: Path) -> Iterator[Path]:
    """The Python files below a folder, sorted; folders of tools, environments and build products are passed over."""
    if path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        here = Path(folder)
        folders[:] = sorted(
            n for n in folders if n not in _SKIPPED and not n.startswith(".") and not (here / n / "pyvenv.cfg").exists()
        )
        yield from (here / name for name in sorted(names) if name.endswith(".py"))


def read_file(path: Path, shown: str) -> tuple[HandFile | None, list[Finding]]:
    """One file, or why it cannot be read (PK701)."""
    try:
        raw = read_regular(path)
        if len(raw) > _LARGEST:
            raise OSError(f"it has {len(raw):,} bytes")
        source = load_source(raw, pin="-", path=_module_path(path))
        _ = source.tree
    except OSError as error:
        return None, [_unread(Position(shown), f"{error.strerror or error}")]
    except UpstreamError as error:
        found = error.findings[0]
        place = found.upstream or Position("")
        return None, [
            _unread(Position(shown, place.line, place.column), found.message.partition(": ")[2] or found.message)
        ]
    file = HandFile(path, shown, source)
    return file, list(_loose(file))


def _unread(place: Position, why: str) -> Finding:
    return finding(
        "PK701",
        f"{place.file} cannot be read as Python: {why}",
        generated=place,
        help="Mend the file, or leave it out. The other files were looked at.",
    )


def _module_path(path: Path) -> str:
    """The path of a module below the folder that holds its outermost package."""
    path = Path(os.path.abspath(path))
    parts = [path.name]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file() or not folder.name.isidentifier():
            break
        parts.insert(0, folder.name)
    return "/".join(parts)


def _loose(file: HandFile) -> Iterator[Finding]:
    """Fence marks that stand in no function."""
    if b"START" not in file.source.data.upper() and b"BEGIN" not in file.source.data.upper():
        return
    spans = [(a, _footer(file.source, b, f.node.col_offset)) for f in file.functions for a, b in (f.lines,)]
    classes = [n for n in ast.walk(file.source.tree) if isinstance(n, DEFINITION) and not isinstance(n, FUNCTION)]
    spans += [(first_line(n), n.end_lineno or n.lineno) for n in classes]
    for line, token in comments_of(file.source).items():
        if (mark := fence_mark(token.text)) is None or any(a <= line <= b for a, b in spans):
            continue
        pairs = fences_of(file.source, 1, file.source.line_count)
        if mark[0] and any(f.start == line and f.end is None for f in pairs):
            yield finding(
                "PK702", f"the fence {mark[1]!r} is left open", generated=file.at(line), help="Close it with its END."
            )


def read_files(paths: Sequence[Path], base: Path) -> tuple[list[HandFile], list[Finding]]:
    """All files of some files and folders, each once, and what cannot be read; names are relative to `base`."""
    files: list[HandFile] = []
    problems: list[Finding] = []
    for path in dict.fromkeys(file for given in paths for file in python_files(given)):
        shown = _shown(path, base)
        file, found = read_file(path, shown)
        problems += found
        if file is not None:
            files.append(file)
    return files, problems


def _shown(path: Path, base: Path) -> str:
    try:
        return Path(os.path.relpath(path, base)).as_posix() if not path.is_absolute() else path.as_posix()
    except ValueError:
        return path.as_posix()


def without(file: HandFile, data: bytes) -> HandFile:
    """The same file with other text."""
    return replace(file, source=load_source(data, pin="-", path=file.source.path))
