"""Patterns: pieces of Python that say where in an upstream symbol a delta goes.

A pattern matches when its Python AST equals upstream's: layout, comments, quotes, string prefixes, trailing commas,
redundant parentheses and implicit string concatenation do not matter; constants are compared by type and value. There is
no fuzz. `...` matches anything in its position (a literal Ellipsis is written `Ellipsis`):

* an expression, one assignment target, an attribute, the name of a function, class, keyword or `as`;
* any number of arguments: `f(...)`, `f(a, ...)`, `f(..., x=1)`. In front of the first keyword argument it stands for
  positional and keyword arguments, behind one for keyword arguments only; with it the keywords may come in any order;
* any number of elements of a tuple, list, set or dict display, of `del` targets, decorators, class bases, parameters,
  `with` items, sequence and class patterns; one or more operands of one `and`/`or`;
* a suite, and any number of statements among others (the shortest run that fits);
* `except ...` and `case ...` any rest of such a head; `case ...: ...` any number of cases.

Clauses that a pattern does not name are open only when its own suite is exactly `...`: the `else` (or `elif`) of `if`,
`for`, `while`; further `except`, `else`, `finally` of a `try` (`try: ...` alone is allowed); decorators, return annotation
and type parameters of `def` and `class`. With any other suite they must be equal. A clause that the pattern names must be
there. A part of a chain (`a and b` in `a and b and c`) is no expression of its own in Python. An `elif` is never found as a statement: `find_clause` reaches it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import ClauseOf, Code, Range, Within
from afd_patchkit.patterns.clauses import Clause, clauses, find_clause
from afd_patchkit.patterns.compile import Pattern, compile_pattern
from afd_patchkit.patterns.match import equal as _equal
from afd_patchkit.patterns.match import is_statement_hole, statements
from afd_patchkit.patterns.near import candidates, describe, near_misses
from afd_patchkit.patterns.search import Match, Window, find_all, inside, statement_span
from afd_patchkit.source.locate import Symbol

__all__ = [
    "Clause",
    "Match",
    "Pattern",
    "Window",
    "clauses",
    "compile_pattern",
    "equal",
    "find_all",
    "find_clause",
    "find_range",
    "find_ranges",
    "inside",
    "select",
    "select_clause",
    "symbol_windows",
]


def equal(pattern: Pattern, node: ast.AST | Sequence[ast.stmt]) -> bool:
    """Whether `pattern` is exactly this expression, this statement or this run of statements."""
    if pattern.kind == "expression":
        return isinstance(node, ast.AST) and _equal(pattern.nodes[0], node)
    nodes: Sequence[ast.AST] = [node] if isinstance(node, ast.AST) else node
    return statements(pattern.nodes, nodes) is not None  # type: ignore[arg-type]


def symbol_windows(symbol: Symbol) -> list[Window]:
    """Where patterns of an entry are searched: bodies and headers of functions; classes and constants themselves too."""
    windows: list[Window] = []
    for node in symbol.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            windows += inside(node)
        else:
            owner = symbol.classes[-1] if symbol.classes else symbol.file.tree
            windows.append(Window((node,), 0, 1, owner))
    return windows


def select(
    pattern: Pattern,
    symbol: Symbol,
    *,
    within: Within | None = None,
    next_to: Code | None = None,
    nth: int | None = None,
    count: int = 1,
    entry: str,
    delta: str,
    windows: Sequence[Window] | None = None,
) -> list[Match]:
    """The matches of `pattern` in `symbol`, exactly `count` of them.

    Args:
        pattern: what to look for.
        symbol: the entry's upstream symbol.
        within: search only inside the statements that this matches (exactly once), or inside one clause.
        next_to: keep only matches with a sibling run directly before or after that this matches.
        nth: keep only this one, 1-based, of what is left.
        count: how many must be left.
        entry: the entry, for findings.
        delta: the delta, for findings.
        windows: search only here (what a wrapping delta wraps); the whole symbol by default.

    Raises:
        ManifestError: one of the patterns is not valid (PK030, PK031).
        DeltaError: nothing matches (PK201), or another number than `count` (PK202); PK203 and PK204 for clauses.
    """
    search = _Search(symbol, within, next_to, nth, count, entry, delta, windows)
    found = find_all(pattern, search.windows, symbol.file)
    return search.counted(search.filtered(found), pattern, found)


def select_clause(
    within: ClauseOf, symbol: Symbol, *, entry: str, delta: str, windows: Sequence[Window] | None = None
) -> Clause:
    """The one clause that `within` names.

    Args:
        within: pattern of a statement, and head of its clause.
        symbol: where to look.
        entry: the entry, for findings.
        delta: name of the delta, for findings.
        windows: blocks to search instead of the whole symbol.

    Raises:
        ManifestError: a pattern is not valid (PK030, PK031).
        DeltaError: the statement is not there exactly once (PK201, PK202), or the clause (PK203, PK204).
    """
    return _Search(symbol, None, None, None, 1, entry, delta, windows).clause(within)


def find_range(
    run: Range,
    symbol: Symbol,
    *,
    within: Within | None = None,
    next_to: Code | None = None,
    nth: int | None = None,
    entry: str,
    delta: str,
) -> Match:
    """The one run of siblings from `run.from_` to `run.to` (see `find_ranges`).

    Args:
        run: first and last statement, as patterns.
        symbol: where to look.
        within: look inside this statement or clause only.
        next_to: only runs beside this statement.
        nth: take this one of the matches, from 1.
        entry: the entry, for findings.
        delta: name of the delta, for findings.
    """
    return find_ranges(run, symbol, within=within, next_to=next_to, nth=nth, count=1, entry=entry, delta=delta)[0]


def find_ranges(
    run: Range,
    symbol: Symbol,
    *,
    within: Within | None = None,
    next_to: Code | None = None,
    nth: int | None = None,
    count: int = 1,
    entry: str,
    delta: str,
    windows: Sequence[Window] | None = None,
) -> list[Match]:
    """The runs of siblings that start with a match of `run.from_` and end with one of `run.to`.

    `to` must match exactly once among the later siblings of `from` (before the next match of `from` in the same list); a match
    of `from` without any starts no run.
    `next_to`, `nth` and `count` apply to the whole run.

    Args:
        run: first and last statement, as patterns.
        symbol: where to look.
        within: look inside this statement or clause only.
        next_to: only runs beside this statement.
        nth: take this one of the matches, from 1.
        count: how many there must be.
        entry: the entry, for findings.
        delta: name of the delta, for findings.
        windows: blocks to search instead of the whole symbol.

    Raises:
        ManifestError: as `select`.
        DeltaError: as `select`; `to` is not among the later siblings (PK207), or several times (PK202).
    """
    file = symbol.file
    search = _Search(symbol, within, next_to, nth, count, entry, delta, windows)
    first, last = compile_pattern(run.from_, "statements"), compile_pattern(run.to, "statements")
    starts = find_all(first, search.windows, file)
    ends = find_all(last, search.windows, file)
    runs: list[Match] = []
    ambiguous: list[Finding] = []
    endless: list[Finding] = []
    for start in starts:
        limit = min(
            (s.index for s in starts if s.body is start.body and s.index > start.index), default=len(start.siblings)
        )
        later = [e for e in ends if e.body is start.body and start.end <= e.index < limit]
        if len(later) == 1:
            nodes = tuple(start.siblings[start.index : later[0].end])
            span = statement_span(nodes, file)
            runs.append(Match(nodes, span, start.body, start.index, start.owner, start.siblings))
        else:
            (ambiguous if later else endless).append(search.no_end(start, later, ends, run))
    if ambiguous or (endless and not runs):
        raise DeltaError(*ambiguous, *endless)
    return search.counted(search.filtered(runs), first, runs)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


class _Search:
    """One search with its filters, and the findings about it."""

    def __init__(
        self,
        symbol: Symbol,
        within: Within | None,
        next_to: Code | None,
        nth: int | None,
        count: int,
        entry: str,
        delta: str,
        windows: Sequence[Window] | None = None,
    ) -> None:
        self.symbol, self.file = symbol, symbol.file
        self.within, self.nth, self.count, self.entry, self.delta = within, nth, count, entry, delta
        self.everything = symbol_windows(symbol) if windows is None else list(windows)
        self.neighbour = compile_pattern(next_to, "statements") if next_to is not None else None
        self.windows = self._narrowed(within)

    def _narrowed(self, within: Within | None) -> list[Window]:
        if within is None:
            return self.everything
        if isinstance(within, ClauseOf):
            clause = self.clause(within)
            return [Window(clause.suite, 0, len(clause.suite), clause.node)]
        match = self._outer(within)
        return [Window(match.siblings, match.index, match.end, match.owner)]

    def clause(self, within: ClauseOf) -> Clause:
        """The clause that `within` names."""
        statement: ast.stmt = self._outer(within.of).nodes[-1]  # type: ignore[assignment]
        return find_clause(statement, within.clause, self.file, entry=self.entry, delta=self.delta)

    def _outer(self, code: Code) -> Match:
        """The one place that a `within` pattern matches."""
        everything = self.everything
        outer = compile_pattern(code, "statements")
        found = find_all(outer, everything, self.file)
        if len(found) != 1:
            raise DeltaError(self._finding(outer, found, "within", everything))
        return found[0]

    def filtered(self, found: Sequence[Match]) -> list[Match]:
        """The matches that `next_to` and `nth` leave."""
        left = [m for m in found if self.neighbour is None or self._beside(m)]
        if self.nth is not None:
            left = left[self.nth - 1 : self.nth]
        return left

    def _beside(self, match: Match) -> bool:
        assert self.neighbour is not None
        wanted: Sequence[ast.stmt] = self.neighbour.nodes  # type: ignore[assignment]
        siblings = match.siblings
        if statements(wanted, siblings, match.end, whole=False) is not None:
            return True
        before = siblings[: match.index]
        holes = any(map(is_statement_hole, wanted))
        starts = range(match.index) if holes else range(match.index - len(wanted), match.index - len(wanted) + 1)
        return any(statements(wanted, before, i) is not None for i in starts if i >= 0)

    def counted(self, left: list[Match], pattern: Pattern, unfiltered: Sequence[Match]) -> list[Match]:
        """`left` if there are as many as there must be."""
        if len(left) == self.count:
            return left
        raise DeltaError(self._finding(pattern, left, "", self.windows, unfiltered))

    def _finding(
        self,
        pattern: Pattern,
        found: Sequence[Match],
        role: str,
        windows: Sequence[Window],
        unfiltered: Sequence[Match] = (),
    ) -> Finding:
        count = 1 if role else self.count
        what = f"`{role}` pattern" if role else "pattern"
        where = self.symbol.qualname + (", inside `within`" if not role and self.within is not None else "")
        details = candidates(found, self.file)
        if found:
            message = f"the {what} matches {_times(len(found))} in {where}, not {_times(count)}"
            help_ = "Narrow it with more statements around it, `within`, `next_to` or `nth`, or say `count`."
            if len(found) < count:
                help_ = "Correct `count`, or the pattern."
        elif unfiltered and not role:
            beside = [m for m in unfiltered if self.neighbour is None or self._beside(m)]
            message = f"the {what} matches {_times(len(unfiltered))} in {where}, "
            message += (
                f"{len(beside)} of them next to `next_to`" if self.neighbour is not None else f"`nth` is {self.nth}"
            )
            details = candidates(unfiltered, self.file)
            help_ = "Correct `next_to` or `nth`; the matches without them are listed."
        else:
            message = f"the {what} matches nothing in {where}"
            details = near_misses(pattern, windows, self.symbol, symbol_windows(self.symbol))
            help_ = "Compare it with the pinned upstream text; patterns are matched exactly, `...` stands for anything."
        return finding(
            "PK202" if found else "PK201",
            message,
            entry=self.entry,
            delta=self.delta,
            manifest=pattern.code.position,
            upstream=self.file.position(found[0].span.start) if found else self.symbol.position,
            details=details,
            help=help_,
        )

    def no_end(self, start: Match, later: Sequence[Match], ends: Sequence[Match], run: Range) -> Finding:
        """The finding for a `from` whose `to` is missing or ambiguous."""
        line = self.file.line_of(start.span.start)
        if later:
            message = f"`to` matches {len(later)} later siblings of the `from` in line {line} of {self.file.path}"
            details = candidates(later, self.file)
        else:
            message = f"`to` matches no later sibling of the `from` in line {line} of {self.file.path}"
            details = tuple(f"matches elsewhere: {describe(m, self.file)}" for m in ends)
        return finding(
            "PK202" if later else "PK207",
            message,
            entry=self.entry,
            delta=self.delta,
            manifest=run.to.position,
            upstream=self.file.position(start.span.start),
            details=details,
            help="`from` and `to` must be statements of one block, `to` below `from`.",
        )
