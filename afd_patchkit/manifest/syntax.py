"""Does the Python in a manifest parse? Checked when it is loaded, so that errors point into the YAML."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import SYMBOL, Code
from afd_patchkit.patterns.compile import argument_help, arguments, compile_head, compile_pattern
from afd_patchkit.source.keywords import KEYWORDS, frames, keyword_of
from afd_patchkit.source.locate import parse_place, parse_reference

_UNFINISHED = (SyntaxError, ValueError, RecursionError, MemoryError)


class _Wrong(Exception):
    """Not the Python that was wanted; line and column are those of the code."""

    def __init__(self, message: str, line: int = 1, column: int = 1, help_: str | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.column, self.help = message, line, column, help_


def problems(code: Code, what: str) -> Iterator[Finding]:
    """What is wrong with `code` as the Python that `what` (see `Holds`) names; nothing when it parses."""
    for number, row in enumerate(code.text.split("\n") if "\t" in code.text else (), 1):
        if "\t" in row[: len(row) - len(row.lstrip())]:
            yield _finding(code, _Wrong("a tab in the indentation", number, row.index("\t") + 1, "Indent with spaces."))
            return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python has to say about the text beyond errors is not for users
            _CHECKS[what](code)
    except _Wrong as wrong:
        yield _finding(code, wrong)
    except ManifestError as error:
        yield from error.findings


def _finding(code: Code, wrong: _Wrong) -> Finding:
    rows = code.text.split("\n")
    line = min(max(wrong.line, 1), max(len(rows) - (not rows[-1]), 1))
    row = rows[line - 1]
    column = min(max(wrong.column, 1), len(row) + 1) if line == wrong.line else len(row) + 1
    return finding(
        "PK020",
        wrong.message,
        manifest=code.at(line, column),
        details=(row, " " * (column - 1) + "^") if row.strip() else (),
        help=wrong.help or "Correct the code; placeholders such as `__upstream__` count as names.",
    )


def _parse(text: str, rows: int = 0, columns: int = 0) -> ast.Module:
    """Parse `text`, whose first `rows` rows are ours, as are the first `columns` columns of the others."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        line, column = (error.lineno or 1) - rows, (error.offset or 1) - columns
        raise _Wrong(f"not Python: {error.msg}", line, column) from error
    except _UNFINISHED as error:
        raise _Wrong(f"not Python: {error or type(error).__name__}") from error


def _statements(code: Code) -> ast.Module:
    tree = _parse(code.text.rstrip())
    if not tree.body:
        raise _Wrong("no statement, only comments")
    return tree


def _expression(code: Code) -> ast.expr:
    text = code.text.strip("\n").rstrip()
    try:
        return ast.parse(text.strip(), mode="eval").body
    except _UNFINISHED:
        pass
    rows = 1 - (len(code.text) - len(code.text.lstrip("\n")))
    try:
        body = _parse(f"(\n{text}\n)", rows).body
    except _Wrong as wrong:
        # an open bracket is blamed on the parenthesis that is ours, and what stands in brackets gets other advice
        if names := arguments(text):
            raise _Wrong(str(wrong), wrong.line, wrong.column, argument_help(names)) from wrong
        if wrong.line < 1 or "\n" not in text:
            _parse(text, rows - 1)
        raise
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise _Wrong("not one expression")
    if _closes_ours(text):
        raise _Wrong("not Python: unmatched ')'")
    return body[0].value


def _base(code: Code) -> None:
    if SYMBOL.fullmatch(code.text.strip()):
        parse_reference(code.text, code.position)
    else:
        _expression(code)


def _element(code: Code) -> None:
    text = code.text.strip()
    starred = text.removeprefix("*")
    _expression(Code(starred, code.at(1, 2), code.indent) if starred != text else code)


def _closes_ours(text: str) -> bool:
    """Whether `text` closes a parenthesis that it did not open: `a) + (b`."""
    try:
        ast.parse(f"[\n{text}\n]")
    except _UNFINISHED as error:
        # a generator or `yield` stands in parentheses only; what closes ours says so
        return "does not match" in str(error) or "unmatched" in str(error)
    return False


def _imports(code: Code) -> None:
    for node in _statements(code).body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            raise _Wrong(
                "not an import statement", node.lineno, node.col_offset + 1, "Put other code into an owned part."
            )
        if isinstance(node, ast.ImportFrom) and node.level:
            raise _Wrong("a relative import", node.lineno, node.col_offset + 1, "Name the module from its top.")
        if any(alias.name == "*" for alias in node.names):
            raise _Wrong("a star import", node.lineno, node.col_offset + 1, "Name what the deltas need.")


def _targets(code: Code) -> None:
    text = code.text.rstrip()
    body = _parse(f"{text} = 0").body
    if len(body) != 1 or not isinstance(body[0], ast.Assign) or len(body[0].targets) != 1:
        raise _Wrong("not an assignment target", help_='Write what stands left of the `=`, such as "a, b".')


def _parameter(code: Code) -> None:
    text = code.text.rstrip()
    body = _parse(f"def f(\n{text}\n): pass", 1).body
    node = body[0]
    assert isinstance(node, ast.FunctionDef)
    given = node.args
    count = len(given.args) + len(given.kwonlyargs) + (given.vararg is not None) + (given.kwarg is not None)
    if len(body) != 1 or count != 1 or given.posonlyargs or given.kwonlyargs or text.endswith(","):
        help_ = 'Write it as in a `def`, without comma, such as "rank: int = 0"; each gets its own delta.'
        raise _Wrong("not one parameter", help_=help_)


def _clause(code: Code) -> None:
    if not keyword_of(code.text):
        words = ", ".join(word for word in KEYWORDS if word != "if")
        help_ = f"Write the whole clause, head and suite: {words} (or if, with `first`)."
        raise _Wrong("not a clause", help_=help_)
    alone, *framed = frames(code.text.rstrip())
    # of `else` under `if` and under `try`, the last one that parses
    first, *others = framed or [alone]
    frame = next((other for other in others if _parses(other.text)), first)
    rows = frame.above.count("\n")
    body = _parse(frame.text, rows, len(frame.inset)).body
    if len(body) > 1:
        raise _Wrong(
            "code stands behind the clause", body[1].lineno - rows, help_="A clause is its head and its suite."
        )


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except _UNFINISHED:
        return False
    return True


_CHECKS: dict[str, Callable[[Code], object]] = {
    "symbol": lambda code: parse_reference(code.text, code.position),
    "symbol or module": lambda code: parse_place(code.text, code.position),
    "name": _expression,
    "base": _base,
    "imports": _imports,
    "pattern": lambda code: compile_pattern(code, "statements"),
    "expression pattern": lambda code: compile_pattern(code, "expression"),
    "any pattern": lambda code: compile_pattern(code, "auto"),
    "statements": _statements,
    "member": _statements,
    "with": lambda code: None,  # what it is depends on the delta's operation
    "expression": _expression,
    "element": _element,
    "targets": _targets,
    "clause": _clause,
    "head": compile_head,
    "parameter": _parameter,
}

CODE = frozenset(_CHECKS)
"""Kinds of text that are code."""
