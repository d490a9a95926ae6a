"""Outlines: a generated module with its upstream lines folded, so that git shows every change and no upstream text."""

from __future__ import annotations

from collections.abc import Iterator

from afd_patchkit.delta.buffer import Buffer, Run, upstream_line
from afd_patchkit.digests import short
from afd_patchkit.source.text import SourceFile

FOLD = "~"


def outline(buffer: Buffer) -> str:
    """The outline of a module's text.

    A run of whole upstream lines becomes one line: their number, file, line range and digest. A line in which only
    names were rebound is folded too, and says so. Everything else stands in full.
    """
    return "".join(line + "\n" for line in _lines(buffer))


def _lines(buffer: Buffer) -> Iterator[str]:
    pending: list[tuple[SourceFile, int, str, str]] = []  # file, line, indentation-free text, kind
    blank: list[str] = []
    for runs in buffer.split_lines():
        text = "".join(run.text for run in runs).rstrip("\n")
        found = _origin(runs)
        if found is None and not text.strip() and pending:
            blank.append(text)  # a blank line between upstream lines belongs to the fold
            continue
        if found and pending and _continues(pending[-1], found, len(blank)):
            pending += [(pending[-1][0], pending[-1][1] + n, "", pending[-1][3]) for n in range(1, len(blank) + 1)]
            blank = []
            pending.append((*found[:2], text.strip(), found[2]))
            continue
        if pending:
            yield _fold(pending)
            yield from blank
            pending, blank = [], []
        if found:
            pending.append((*found[:2], text.strip(), found[2]))
        else:
            yield text.rstrip()
    if pending:
        yield _fold(pending)
        yield from blank


def _continues(last: tuple[SourceFile, int, str, str], found: tuple[SourceFile, int, str], blank: int) -> bool:
    file, line, kind = found
    if last[0] is not file or last[3] != kind or last[1] + blank + 1 != line:
        return False
    return not any(text.strip() for text in file.lines(last[1] + 1, line - 1)) if blank else True


def _origin(runs: list[Run]) -> tuple[SourceFile, int, str] | None:
    whole = upstream_line(runs)
    if whole:
        return (*whole, "")
    names = sorted({run.label for run in runs if not run.file and run.text.strip()})
    files = {id(run.file): run.file for run in runs if run.file is not None and run.text.strip()}
    if len(files) != 1 or not names or set(names) & {"delta", "fence", "gap", "owned"}:
        return None
    first = next(run for run in runs if run.file is not None and run.text.strip())
    assert first.file is not None
    return first.file, first.file.line_of(first.start + len(first.text) - len(first.text.lstrip())), ", ".join(names)


def _fold(pending: list[tuple[SourceFile, int, str, str]]) -> str:
    file, first, _, kind = pending[0]
    last = pending[-1][1]
    digest = short("\n".join(text for _, _, text, _ in pending), 16)
    count = len(pending)
    rebound = f" with {kind}" if kind else ""
    lines = "line" if count == 1 else "lines"
    return f"{FOLD} {count} upstream {lines}{rebound}: {file.pin} {file.path}:{first}-{last} {digest}"


def verbatim_lines(buffer: Buffer, file: SourceFile) -> int:
    """Number of non-blank lines of `file` that stand whole in the buffer, each counted once."""
    origins = (upstream_line(line) for line in buffer.split_lines())
    return len({origin[1] for origin in origins if origin and origin[0] is file})
