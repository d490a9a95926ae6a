"""Fence comments around what a delta touched: the smallest run of whole lines, numbered when there are several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from afd_patchkit.delta.buffer import Buffer, Run, upstream_line
from afd_patchkit.delta.edits import Nesting
from afd_patchkit.delta.place import indent_of
from afd_patchkit.fence import closing, numbered, opening
from afd_patchkit.source.text import Text
from afd_patchkit.source.tokens import unsafe_boundaries


@dataclass(frozen=True, slots=True)
class Fence:
    """One fenced region.

    Attributes:
        name: text behind `PATCH START:`/`PATCH END:`.
        delta: name of the delta.
        first: 1-based first line, in the text without fences.
        last: 1-based last line; `first - 1` for a removal that leaves nothing.
    """

    name: str
    delta: str
    first: int
    last: int


@dataclass(slots=True)
class _Line:
    """A line of the text, and the lines directly above it that edits have taken out.

    Attributes:
        runs: what it consists of.
        gone: ids of the edits that took the lines out.
        indent: indentation of the first such line.
    """

    runs: list[Run]
    gone: list[int] = field(default_factory=list)
    indent: str | None = None

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)


@dataclass(slots=True)
class _Region:
    delta: str
    first: int
    last: int
    depth: int
    edit: int
    owner: str | None = None
    """For a removal: the delta around it."""

    @property
    def empty(self) -> bool:
        return self.last < self.first


def draw(buffer: Buffer, nesting: Nesting, marker: str) -> tuple[Buffer, tuple[Fence, ...]]:
    """Add the fence lines of all edits.

    Args:
        buffer: rendered text of the entry; ends with a newline.
        nesting: its edits.
        marker: comment prefix, for instance `### PATCH`.

    Returns:
        the text with fences, and the fences in order of their first line.
    """
    if not nesting.edits:
        return buffer, ()
    lines = _drop_removed(buffer.split_lines())
    text = Text("".join(line.text for line in lines).encode())
    unsafe = unsafe_boundaries(text, 1, max(1, text.line_count))
    regions = _regions(lines, nesting, unsafe, text.line_count)
    fences = _named(regions)
    return _write(lines, fences, regions, marker), tuple(fences)


def _drop_removed(lines: list[list[Run]]) -> list[_Line]:
    """Take out lines that only removals have emptied; remember whose they were."""
    out: list[_Line] = []
    gone: list[int] = []
    indent: str | None = None
    for runs in lines:
        content = "".join(run.text for run in runs)
        markers = [edit for run in runs if not run.text for edit in run.edits]
        if markers and not content.strip():
            gone += markers
            indent = indent if indent is not None else indent_of(content)
            continue
        out.append(_Line(runs, gone, indent))
        gone, indent = [], None
    if gone:
        out.append(_Line([], gone, indent))
    return out


def _regions(lines: list[_Line], nesting: Nesting, unsafe: frozenset[int], count: int) -> list[_Region]:
    regions: list[_Region] = []
    gone = {edit: number for number, line in reversed(list(enumerate(lines, 1))) for edit in line.gone}
    stretches = _stretches(lines, nesting)
    for edit in nesting.edits:
        depth, owner = nesting.depth(edit), nesting.owner(edit)
        for first, last in stretches.get(edit.id, ()):
            regions.append(_Region(edit.delta, first, last, depth, edit.id))
        if edit.id in gone and edit.id not in stretches:
            regions.append(
                _Region(edit.delta, gone[edit.id], gone[edit.id] - 1, depth, edit.id, owner.delta if owner else None)
            )
    for region in regions:
        _widen(region, unsafe, count)
    return _nest(_join(regions))


def _stretches(lines: list[_Line], nesting: Nesting) -> dict[int, list[tuple[int, int]]]:
    """The runs of lines of each edit; edits of one group share one run."""
    layout = {edit.id for edit in nesting.edits if edit.emitted and not edit.emitted.strip()}
    touched: dict[int, set[int]] = {}
    blank: dict[int, set[int]] = {}
    pending: list[tuple[int, set[int]]] = []
    for number, line in enumerate(lines, 1):
        cut = any(run.file and run.text.strip() for run in line.runs) and not _whole(line)
        empty = not line.text.strip()
        beside: set[int] = set()
        for run in line.runs:
            visible = not run.text or bool(run.text.strip())
            for one in run.edits:
                if visible or (cut and one in layout):
                    touched.setdefault(one, set()).add(number)
                elif empty:
                    blank.setdefault(one, set()).add(number)
                elif cut:
                    beside.add(one)  # a line break or indentation beside somebody else's text
        if beside:
            pending.append((number, beside))
    groups: dict[int, set[int]] = {}
    for edit in nesting.edits:
        if edit.group is not None and edit.id in touched:
            groups.setdefault(edit.group, set()).update(touched.pop(edit.id))
            owner = min(e.id for e in nesting.edits if e.group == edit.group)
            touched[owner] = set(range(min(groups[edit.group]), max(groups[edit.group]) + 1))
    covered = set().union(*touched.values()) if touched else set()
    for number, beside in pending:
        if number not in covered:
            for one in beside:
                touched.setdefault(one, set()).add(number)
    return {one: _runs(numbers, blank.get(one, set())) for one, numbers in touched.items()}


def _whole(line: _Line) -> bool:
    """Whether the line is a whole upstream line, at its own indentation unless it was moved with a whole block."""
    found = upstream_line(line.runs)
    if found is None:
        return False
    file, number = found
    return line.text.removesuffix("\n") == file.lines(number, number)[0] or any(r.label == "indent" for r in line.runs)


def _runs(numbers: set[int], blank: set[int]) -> list[tuple[int, int]]:
    """Runs of consecutive numbers, blank ones in between included."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and all(n in blank for n in range(runs[-1][1] + 1, number)):
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _widen(region: _Region, unsafe: frozenset[int], count: int) -> None:
    """Move the borders to places where a comment line may stand."""
    while region.first in unsafe:
        region.first -= 1
    while region.last < count and region.last + 1 in unsafe:
        region.last += 1


def _join(regions: Sequence[_Region]) -> list[_Region]:
    """Join regions of one delta that touch or overlap."""
    joined: list[_Region] = []
    for region in sorted(regions, key=lambda r: (r.delta, r.first, r.last, r.edit)):
        last = joined[-1] if joined else None
        if last and last.delta == region.delta and region.first <= last.last + 1:
            last.last = max(last.last, region.last)
            last.depth, last.edit = min(last.depth, region.depth), min(last.edit, region.edit)
        else:
            joined.append(region)
    return joined


def _nest(regions: list[_Region]) -> list[_Region]:
    """Make overlapping regions of different deltas nested: the earlier one grows around the later one."""
    changed = True
    while changed:
        changed = False
        regions.sort(key=_order)
        for index, outer in enumerate(regions):
            for inner in regions[index + 1 :]:
                if inner.first <= outer.last < inner.last:
                    outer.last = inner.last
                    changed = True
        if changed:
            regions = _join(regions)
    return sorted(regions, key=_order)


def _order(region: _Region) -> tuple[int, int, int, int, int]:
    """Outer regions before inner ones; a removal before what stands in the line below it, unless that wraps it."""
    return (region.first, int(not region.empty or region.depth > 0), -region.last, region.depth, region.edit)


def _named(regions: list[_Region]) -> list[Fence]:
    total: dict[str, int] = {}
    for region in regions:
        total[region.delta] = total.get(region.delta, 0) + 1
    seen: dict[str, int] = {}
    fences: list[Fence] = []
    for region in regions:
        name = region.delta
        if total[name] > 1:
            seen[name] = seen.get(name, 0) + 1
            name = numbered(name, seen[name], total[name])
        fences.append(Fence(name, region.delta, region.first, region.last))
    return fences


def _write(lines: list[_Line], fences: list[Fence], regions: list[_Region], marker: str) -> Buffer:
    before: dict[int, list[str]] = {}
    after: dict[int, list[tuple[str, str]]] = {}
    for fence, region in zip(fences, regions, strict=True):
        indent = _indent_at(lines, fence)
        start, end = (f"{indent}{side(fence.name, marker)}\n" for side in (opening, closing))
        if not region.empty:
            before.setdefault(fence.first, []).append(start)
            after.setdefault(fence.last, []).insert(0, (end, fence.delta))
            continue
        ends = after.get(fence.last, [])
        around = [index for index, (_, delta) in enumerate(ends) if delta == region.owner]
        if around:  # what was taken out stood at the end of the region around it
            ends.insert(around[0], (start + end, fence.delta))
        else:
            before.setdefault(fence.first, []).append(start + end)
    out: list[Run] = []
    for number, line in enumerate(lines, 1):
        out += [Run(text, None, 0, (), "fence") for text in before.get(number, ())]
        out += line.runs
        if number in after and line.runs and not line.text.endswith("\n"):
            out.append(Run("\n", None, 0, (), "fence"))
        out += [Run(text, None, 0, (), "fence") for text, _ in after.get(number, ())]
    return Buffer(out)


def _indent_at(lines: list[_Line], fence: Fence) -> str:
    if fence.last < fence.first:
        return lines[fence.first - 1].indent or indent_of(lines[fence.first - 1].text)
    for number in range(fence.first, fence.last + 1):
        if lines[number - 1].text.strip():
            return indent_of(lines[number - 1].text)
    return indent_of(lines[fence.first - 2].text) if fence.first >= 2 else ""
