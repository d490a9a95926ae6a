"""Text under construction that remembers, byte for byte, where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from afd_patchkit.source.rows import string_lines
from afd_patchkit.source.text import SourceFile, Span


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of output with one origin.

    Attributes:
        text: the output.
        file: the upstream file it is verbatim from; None for emitted text.
        start: byte offset in `file`.
        edits: ids of the edits it stands in, outermost first (kept upstream text inside a wrap has them too).
        label: for emitted text: `delta`, `fence`, `indent`, or the reason of a name edit.
    """

    text: str
    file: SourceFile | None = None
    start: int = 0
    edits: tuple[int, ...] = ()
    label: str = "delta"

    def part(self, first: int, last: int) -> Run:
        """The characters `first` to `last` (half-open) of this run."""
        skipped = len(self.text[:first].encode()) if self.file else 0
        return replace(self, text=self.text[first:last], start=self.start + skipped)


class Buffer:
    """A sequence of runs; all changes make a new buffer."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.runs: tuple[Run, ...] = tuple(runs)

    @classmethod
    def verbatim(cls, file: SourceFile, span: Span, edits: tuple[int, ...] = ()) -> Buffer:
        """A buffer of upstream text that is kept as it is."""
        return cls([Run(file.slice(span), file, span.start, edits)])

    @classmethod
    def emitted(cls, text: str, edits: tuple[int, ...] = (), label: str = "delta") -> Buffer:
        """Text that no upstream file holds."""
        return cls([Run(text, None, 0, edits, label)])

    @property
    def text(self) -> str:
        """The text as it stands now."""
        return "".join(run.text for run in self.runs)

    def __add__(self, other: Buffer) -> Buffer:
        return Buffer([*self.runs, *other.runs])

    def inside(self, edit: int) -> Buffer:
        """The same text, standing inside one more (outer) edit."""
        return Buffer(replace(run, edits=(edit, *run.edits)) for run in self.runs)

    def positioned(self) -> Iterator[tuple[int, Run]]:
        """Each run with the character offset it starts at."""
        at = 0
        for run in self.runs:
            yield at, run
            at += len(run.text)

    def split_lines(self) -> list[list[Run]]:
        """The runs of each line, newline included; runs are cut at line ends, empty marker runs stay where they are."""
        lines: list[list[Run]] = [[]]
        for run in self.runs:
            if not run.text:
                lines[-1].append(run)
                continue
            at = 0
            while at < len(run.text):
                end = run.text.find("\n", at)
                end = len(run.text) if end < 0 else end + 1
                lines[-1].append(run if (at, end) == (0, len(run.text)) else run.part(at, end))
                if run.text[end - 1] == "\n":
                    lines.append([])
                at = end
        if not lines[-1]:
            lines.pop()
        elif not any(run.text for run in lines[-1]) and len(lines) > 1:
            lines[-2].extend(lines.pop())
        return lines

    def reindent(self, remove: str, add: str, *, skip_first: bool = False) -> Buffer:
        """Change the indentation of all lines but blank ones and those that begin inside a string.

        A line that does not start with `remove` (a continuation line left of its statement) stays as it is. Python counts
        indentation from the last form feed of a line on, and so does this.

        Args:
            remove: white space to take off.
            add: white space to put there instead.
            skip_first: the first line is the rest of a line whose indentation is not part of this buffer.
        """
        if remove == add:
            return self
        text = self.text
        frozen = string_lines(text)
        out: list[Run] = []
        for number, line in enumerate(self.split_lines(), 1):
            content = "".join(run.text for run in line)
            lead = len(content) - len(content.lstrip(" \t\f"))
            feed = content.rfind("\f", 0, lead) + 1
            emptied = any(not run.text for run in line)  # by a removal; the place of its fence
            movable = (content.strip() or emptied) and number not in frozen and content.startswith(remove, feed)
            if not movable or (skip_first and number == 1):
                out.extend(line)
                continue
            out.extend(_take_front(line, feed))
            if add:
                out.append(Run(add, None, 0, line[0].edits, "indent"))
            out.extend(_drop_front(line, feed + len(remove)))
        return Buffer(out)

    def replace(self, changes: Sequence[tuple[int, int, str, str]]) -> Buffer:
        """Replace character ranges; `changes` are disjoint `(start, end, text, label)`.

        An emitted run stays inside the edits that the replaced text stood in.
        """
        out: list[Run] = []
        pending = sorted(changes)
        for (_, end, _, _), (start, _, _, _) in pairwise(pending):
            assert end <= start, "changes overlap"
        index = 0
        for at, run in self.positioned():
            stop = at + len(run.text)
            cursor = at
            while index < len(pending) and pending[index][0] < stop:
                start, end, text, label = pending[index]
                if start >= at:
                    out.append(run.part(cursor - at, start - at))
                    out.append(Run(text, None, 0, run.edits, label))
                cursor = min(end, stop)
                if end > stop:
                    break
                index += 1
            if cursor < stop or not run.text:
                out.append(run.part(cursor - at, len(run.text)) if cursor > at else run)
        out.extend(Run(text, None, 0, (), label) for _, _, text, label in pending[index:])
        return Buffer(run for run in out if run.text or not run.file)


def _take_front(line: list[Run], count: int) -> list[Run]:
    """The first `count` characters."""
    out: list[Run] = []
    for run in line:
        taken = min(count, len(run.text))
        count -= taken
        if taken:
            out.append(run.part(0, taken))
    return out


def _drop_front(line: list[Run], count: int) -> list[Run]:
    """All but the first `count` characters; empty marker runs stay."""
    out: list[Run] = []
    for run in line:
        taken = min(count, len(run.text))
        count -= taken
        if not taken:
            out.append(run)
        elif taken < len(run.text):
            out.append(run.part(taken, len(run.text)))
    return out


def upstream_line(line: Sequence[Run]) -> tuple[SourceFile, int] | None:
    """The file and 1-based number of the upstream line that `line` is a whole copy of, indentation aside."""
    verbatim = [run for run in line if run.text.strip()]
    if not verbatim or any(run.file is None or run.file is not verbatim[0].file for run in verbatim):
        return None
    file = verbatim[0].file
    assert file is not None
    for one, other in pairwise(verbatim):
        if one.start + len(one.text.encode()) != other.start:
            return None
    first, last = verbatim[0], verbatim[-1]
    start = first.start + len(first.text.encode()) - len(first.text.lstrip(" \t\f").encode())
    end = last.start + len(last.text.rstrip("\n").encode())
    number = file.line_of(start)
    begin = file.starts[number - 1]
    stop = file.starts[number] - 1 if number < len(file.starts) else len(file.data)
    if file.data[begin:start].strip() or file.data[end:stop].strip() or end > stop:
        return None
    return file, number
