"""`take:` text of another pin's symbol as inserted code: it stays that file's text, byte for byte, and is tracked."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.delta.builder import Builder
from afd_patchkit.delta.edits import Nesting, check_overlaps, render
from afd_patchkit.delta.fences import draw
from afd_patchkit.delta.operations import apply_delta
from afd_patchkit.delta.place import Place
from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import Range, Take
from afd_patchkit.patterns.select import Window, compile_pattern, find_range, select
from afd_patchkit.source.fstrings import correct_positions
from afd_patchkit.source.locate import Symbol, find_symbol, parse_reference
from afd_patchkit.source.syntax import binding, docstring_of
from afd_patchkit.source.text import SourceFile, Span, Text, parse_quietly

Reader = Callable[[str, str], SourceFile]
"""`(pin, module) -> SourceFile`."""

Taken = dict[tuple[str, str], tuple[SourceFile, Span]]
"""Per pin and symbol, the file and the bytes used of it; from the first to the last where several deltas take."""


def taker(entry: str, read: Reader | None, taken: Taken, marker: str) -> Callable[[Take], Buffer]:
    """A function that renders the text of a `take:`, dedented, with fences around what its own deltas touch.

    Args:
        entry: for findings.
        read: gives other pins' files.
        taken: what is used is noted here.
        marker: comment prefix of the fences.
    """

    def take(request: Take) -> Buffer:
        assert read is not None
        module, qualname = parse_reference(request.symbol.text, request.symbol.position)
        symbol = find_symbol(read(request.pin, module), qualname)
        window = _window(request, symbol, entry)
        place = Place(symbol.file, symbol.line_ranges)
        suite = place.suite(window.owner, window.body)
        span = suite.region(window.start, window.stop - 1)
        key = (request.pin, request.symbol.text)
        before = taken[key][1] if key in taken else span
        taken[key] = (symbol.file, Span(min(before.start, span.start), max(before.end, span.end)))
        builder = Builder(symbol, entry, take, windows=[window])
        problems: list[Finding] = []
        for delta in request.deltas:
            try:
                apply_delta(builder, delta)
            except DeltaError as error:
                problems += error.findings
        problems = problems or check_overlaps(builder.edits, symbol.file, entry)
        problems += [
            finding("PK217", f"delta {e.delta!r} lies outside the taken text", entry=entry, delta=e.delta, manifest=e.where,
                    upstream=symbol.file.position(e.span.start), help="Take more, or change it in a delta of its own.")
            for e in builder.edits
            if not span.contains(e.span)
        ]  # fmt: skip
        if problems:
            raise DeltaError(*problems)
        body = _rendered(place, span, Nesting(builder.edits), marker)
        if request.rename:
            body = _renamed(request, body, symbol, entry)
        # what stands there now belongs to the delta that takes, not to the taken text's own deltas
        return Buffer(type(run)(run.text, run.file, run.start, (), run.label) for run in body.runs)

    return take


def _rendered(place: Place, span: Span, nesting: Nesting, marker: str) -> Buffer:
    """The taken text, dedented, with the fences of its own deltas; it ends without a newline."""
    fresh = place.starts_line(span.start)
    start = place.line_start(span.start) if fresh else span.start
    body = render(place.file, Span(start, span.end), nesting)
    if nesting.edits:
        fenced, _ = draw(body + Buffer.emitted("\n", (), "gap"), nesting, marker)
        *rest, last = fenced.runs
        body = Buffer([*rest, last.part(0, len(last.text) - 1)])
    return body.reindent(place.line_indent(span.start), "", skip_first=not fresh)


def _window(request: Take, symbol: Symbol, entry: str) -> Window:
    """The statements that `take:` selects."""
    node = symbol.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        raise DeltaError(
            finding("PK215", f"{request.symbol.text} has no body to take from", entry=entry, manifest=request.where,
                    upstream=symbol.position, help="Take from a function or class.")
        )  # fmt: skip
    if request.from_ is None:
        first = int(docstring_of(node.body) is not None and len(node.body) > 1)
        return Window(node.body, first, len(node.body), node)
    if request.to is None:
        (match,) = select(compile_pattern(request.from_, "statements"), symbol, entry=entry, delta="take")
    else:
        run = Range.model_validate({"from": request.from_, "to": request.to})
        match = find_range(run, symbol, entry=entry, delta="take")
    return Window(match.siblings, match.index, match.end, match.owner)


# ---- rename ---------------------------------------------------------------------------------------------------------


def _renamed(request: Take, body: Buffer, symbol: Symbol, entry: str) -> Buffer:
    """Write what the renamed names mean here; code of the take's own deltas is left alone."""
    text = body.text
    plain = Text(text.encode())
    tree = parse_quietly(text)
    correct_positions(tree, plain)
    foreign = [(at, at + len(run.text)) for at, run in body.positioned() if run.file is None]
    changes: list[tuple[int, int, str, str]] = []
    for name, code in request.rename.items():
        expression = ast.parse(f"({code.text.strip()}\n)", mode="eval").body
        new = code.text.strip()
        atom = isinstance(expression, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        uses = list(_uses(tree, name))
        bound = any(not isinstance(use, ast.Name) or not isinstance(use.ctx, ast.Load) for use in uses)
        if bound and not (isinstance(expression, ast.Name) and all(isinstance(use, ast.Name) for use in uses)):
            raise DeltaError(
                finding(
                    "PK224",
                    f"`{name}` is bound in the text taken from {request.symbol.text} and cannot become `{new}` there",
                    entry=entry,
                    manifest=code.position,
                    upstream=symbol.position,
                    help="Rename a bound name to another name, or change the text with the take's `deltas`.",
                )
            )
        found = False
        for use in uses:
            assert isinstance(use, ast.Name)
            span = plain.node_span(use)
            start = len(plain.data[: span.start].decode())
            end = start + len(plain.slice(span))
            if any(first <= start and end <= last for first, last in foreign):
                continue
            found = True
            changes.append((start, end, new if atom else f"({new})", "delta"))
        if not found:
            raise DeltaError(
                finding(
                    "PK224",
                    f"`{name}` does not occur in the text taken from {request.symbol.text}",
                    entry=entry,
                    manifest=code.position,
                    upstream=symbol.position,
                    help="Delete it from `rename`.",
                )
            )
    return body.replace(changes)


def _uses(tree: ast.AST, name: str) -> Iterator[ast.AST]:
    """Every node that reads or binds `name`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            used = node.names
        else:
            found = binding(node)
            used = [node.id] if isinstance(node, ast.Name) else [found[0]] if found else []
        if name in used:
            yield node
