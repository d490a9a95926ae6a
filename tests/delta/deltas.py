"""Apply deltas as a manifest has them, check what must hold for every output, and undo them."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Mapping

import pytest

from afd_patchkit.assemble.claimed import kept_parts
from afd_patchkit.assemble.proof.claims import Claim, Disagreement
from afd_patchkit.assemble.proof.prove import prove
from afd_patchkit.assemble.verify import check_entry
from afd_patchkit.delta.apply import Applied, apply_deltas
from afd_patchkit.digests import sha256
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding
from afd_patchkit.manifest.load import parse_manifest
from afd_patchkit.model import Delta, Entry
from afd_patchkit.source.locate import find_symbol
from afd_patchkit.source.text import SourceFile, load_source

ENTRY = "m.py::f"
MARKER = "### PATCH"


def deltas_of(text: str) -> tuple[Delta, ...]:
    """The deltas of a manifest whose `deltas:` list is `text`."""
    listed = textwrap.indent(textwrap.dedent(text).strip("\n"), "      ")
    manifest = f"schema: 1\nmodule: m.py\nsummary: S.\npin: acme\nentries:\n  - symbol: acme.m:f\n    reason: r\n    deltas:\n{listed}\n"
    entry = parse_manifest(manifest.encode(), "m.yaml").entries[0]
    assert isinstance(entry, Entry)
    return entry.deltas


def source(upstream: str | bytes) -> SourceFile:
    """An upstream module."""
    raw = upstream if isinstance(upstream, bytes) else textwrap.dedent(upstream).removeprefix("\n").encode()
    return load_source(raw, pin="acme", path="acme/m.py")


def apply(
    upstream: str | bytes, deltas: str, *, symbol: str = "f", donors: Mapping[str, str] | None = None, indent: str = ""
) -> Applied:
    """Apply deltas, and check what must hold for every output."""

    def read(pin: str, module: str) -> SourceFile:
        assert pin == "donor"
        text = textwrap.dedent((donors or {})[module]).removeprefix("\n")
        return load_source(text.encode(), pin=pin, path=module.replace(".", "/") + ".py")

    found = find_symbol(source(upstream), symbol)
    applied = apply_deltas(found, deltas_of(deltas), entry=ENTRY, marker=MARKER, indent=indent, read=read)
    check_entry(found, applied.edits, (), applied.buffer, MARKER)
    assert undo(applied, indent) == found.data
    if not indent:
        found_wrong = disagreements(applied)
        assert not found_wrong, (found_wrong, applied.buffer.text)
    return applied


def disagreements(applied: Applied, text: str | None = None) -> list[Disagreement]:
    """What the second proof says of the output, or of `text` in its place."""
    symbol = applied.symbol
    claim = Claim(
        ref=ENTRY,
        name=symbol.name,
        group=None,
        qualname=symbol.qualname,
        path=symbol.file.path,
        upstream=symbol.file.text,
        indent=symbol.indent,
        parts=kept_parts(symbol, applied.edits),
        edits=frozenset((e.delta, e.span.start, e.span.end, sha256(e.emitted.encode())[:16]) for e in applied.edits),
    )
    return [d for d in prove(applied.buffer.text if text is None else text, [claim], MARKER) if not d.unread]


def refused(
    upstream: str | bytes, deltas: str, *, symbol: str = "f", donors: Mapping[str, str] | None = None
) -> Finding:
    """The one finding that deltas are refused with."""
    with pytest.raises(PatchkitError) as caught:
        apply(upstream, deltas, symbol=symbol, donors=donors)
    (found,) = caught.value.findings
    return found


# ---- undo: an oracle that reads the output's text and the recorded edits, and nothing else of the engine --------------


def undo(applied: Applied, indent: str = "") -> bytes:
    """Upstream's bytes, from the output's text without its fenced regions and upstream's bytes of the recorded edits.

    What stands outside fences must be upstream's lines, in order; what is missing must be lines that edits touch.
    """
    symbol = applied.symbol
    data = symbol.file.data
    outside = _outside_fences(applied, applied.buffer.text)
    upstream: list[str] = []
    touched: list[bool] = []
    for first, last in symbol.line_ranges:
        for number in range(first, last + 1):
            span = symbol.file.line_span(number, number)
            upstream.append(data[span.start : span.end].removesuffix(b"\n").decode())
            touched.append(
                any(_touches(e.span.start, e.span.end, span.start, span.end, data, e.emitted) for e in applied.edits)
            )
    touched = _widened(applied, touched)
    forms = [_forms(line, symbol.indent, indent) for line in upstream]
    assert _fits(forms, touched, outside), "\n".join(outside)
    return b"".join(line.encode() + b"\n" for line in upstream)


def _forms(line: str, old: str, new: str) -> set[str]:
    """How an upstream line may stand in the output: re-indented, or as it is (strings, continuation lines)."""
    found = re.match(r"[ \t\f]*\f", line)
    feed = found[0] if found else ""
    body = line[len(feed) :]
    return {line} | ({feed + new + body.removeprefix(old)} if body.startswith(old) else set())


def _touches(start: int, end: int, first: int, last: int, data: bytes, emitted: str) -> bool:
    """Whether an edit changes the line whose bytes are `first` to `last` (newline included)."""
    if start < end:
        return start < last and first < end
    if not first <= start < last:
        return False
    left, right = data[first:start].strip(), data[start:last].strip()
    return bool(left and not emitted.startswith("\n")) or bool(right and not re.search(r"\n[ \t]*$", emitted))


def _widened(applied: Applied, touched: list[bool]) -> list[bool]:
    """No comment fits between the lines of a string or of lines that a backslash joins: they are fenced together."""
    symbol = applied.symbol
    numbers = [n for first, last in symbol.line_ranges for n in range(first, last + 1)]
    marked = {n for n, one in zip(numbers, touched, strict=True) if one}
    before: set[int] = set()
    while before != marked:
        before = set(marked)
        for node in (n for part in symbol.nodes for n in ast.walk(part) if isinstance(n, ast.Constant | ast.JoinedStr)):
            lines = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            marked |= lines if marked & lines else set()
        for number in numbers[:-1]:
            if symbol.file.lines(number, number)[0].endswith("\\") and marked & {number, number + 1}:
                marked |= {number, number + 1}
    return [n in marked for n in numbers]


def _fits(upstream: list[set[str]], touched: list[bool], lines: list[str]) -> bool:
    """Whether `lines` are `upstream`, in order, without some of the touched lines (blank ones aside)."""
    wanted = [line for line in lines if line.strip()]
    reached = {0}  # how many of the wanted lines may have been met
    for forms, loose in zip(upstream, touched, strict=True):
        if not any(form.strip() for form in forms):
            continue
        step = {at + 1 for at in reached if at < len(wanted) and wanted[at] in forms}
        reached = step | (reached if loose else set())
    return len(wanted) in reached


def _outside_fences(applied: Applied, text: str) -> list[str]:
    opened: list[str] = []
    seen: list[str] = []
    out: list[str] = []
    names = {fence.name for fence in applied.fences}
    shape = re.compile(rf"[ \t]*# {re.escape(MARKER)} (START|END): (.*)")
    lead = "if 1:\n" if text[:1] in (" ", "\t") else ""
    tokens = list(tokenize.generate_tokens(io.StringIO(lead + text).readline))
    comments = {t.start[0] - len(lead.splitlines()) for t in tokens if t.type == tokenize.COMMENT}
    for number, line in enumerate(text.split("\n")[:-1], 1):
        found = shape.fullmatch(line) if number in comments else None
        if found and found[2] in names:
            if found[1] == "START":
                opened.append(found[2])
                seen.append(found[2])
            else:
                assert opened.pop() == found[2], "fences are not nested"
        elif not opened:
            out.append(line)
    assert not opened, "a fence is open"
    assert sorted(seen) == sorted(names), "a fence is missing or not unique"
    return out
