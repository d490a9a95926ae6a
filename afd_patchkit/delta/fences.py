"""Fence comments around what a delta touched: the smallest run of whole lines, numbered when there are several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from afd_patchkit.delta.buffer import Buffer, Run, upstream_line
from afd_patchkit.delta.edits import Edit
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
class _Region:
    delta: str
    first: int
    last: int
    depth: int

    @property
    def empty(self) -> bool:
        return self.last < self.first


def draw(buffer: Buffer, edits: Sequence[Edit], marker: str) -> tuple[Buffer, tuple[Fence, ...]]:
    """Add the fence lines of all edits.

    Args:
        buffer: rendered text of the entry; ends with a newline.
        edits: its edits.
        marker: comment prefix, for instance `### PATCH`.

    Returns:
        the text with fences, and the fences in order of their first line.
    """
    lines = _drop_removed(buffer.split_lines())
    text = Text("".join(run.text for line, _ in lines for run in line).encode())
    unsafe = unsafe_boundaries(text, 1, max(1, text.line_count))
    regions = _regions(lines, edits, unsafe, text.line_count)
    fences = _named(regions)
    return _write(lines, fences, regions, marker), tuple(fences)


_Line = tuple[list[Run], tuple[int, ...]]
"""The runs of one line, and the edits of removed lines that stood directly before it."""


def _drop_removed(lines: list[list[Run]]) -> list[_Line]:
    """Take out lines that only a removal has emptied; remember whose they were."""
    out: list[_Line] = []
    gone: list[int] = []
    for line in lines:
        content = "".join(run.text for run in line)
        markers = [run.edits[0] for run in line if run.edits and not run.text and not run.file]
        emptied = markers and not content.strip()
        if emptied:
            gone += markers
            continue
        if upstream_line(line) and line[0].edits and not line[0].text and not line[0].file:
            # whole lines were taken out directly before this one, which itself is untouched
            gone += [run.edits[0] for run in line if run.edits and not run.text]
            line = [run for run in line if run.text]
        out.append((line, tuple(gone)))
        gone = []
    if gone:
        out.append(([], tuple(gone)))
    return out


def _regions(lines: list[_Line], edits: Sequence[Edit], unsafe: frozenset[int], count: int) -> list[_Region]:
    by_id = {edit.id: edit for edit in edits}
    extent: dict[int, tuple[int, int]] = {}
    for number, (line, gone) in enumerate(lines, 1):
        for edit in gone:
            extent.setdefault(edit, (number, number - 1))
        cut = any(run.file and run.text.strip() for run in line) and not upstream_line(line)
        for run in line:
            if run.text and not run.text.strip() and not cut:
                continue  # a line break or indentation beside somebody else's line does not touch it
            for edit in run.edits:
                first, last = extent.get(edit, (number, number))
                extent[edit] = (min(first, number), max(last, number))
    regions: list[_Region] = []
    for edit, (first, last) in sorted(extent.items(), key=lambda item: (item[1], item[0])):
        depth = 0
        parent = by_id[edit].parent
        while parent is not None:
            depth += 1
            parent = by_id[parent].parent
        regions.append(_Region(by_id[edit].delta, first, last, depth))
    for region in regions:
        _widen(region, unsafe, count)
    return _nest(_join(regions), unsafe)


def _widen(region: _Region, unsafe: frozenset[int], count: int) -> None:
    """Move the borders to places where a comment line may stand."""
    while region.first in unsafe:
        region.first -= 1
    while region.last < count and region.last + 1 in unsafe:
        region.last += 1


def _join(regions: Iterable[_Region]) -> list[_Region]:
    """Join regions of one delta that touch or overlap."""
    joined: list[_Region] = []
    for region in sorted(regions, key=lambda r: (r.delta, r.depth, r.first, r.last)):
        last = joined[-1] if joined else None
        if last and last.delta == region.delta and last.depth == region.depth and region.first <= last.last + 1:
            last.last = max(last.last, region.last)
        else:
            joined.append(region)
    return joined


def _nest(regions: list[_Region], unsafe: frozenset[int]) -> list[_Region]:
    """Make overlapping regions of different deltas nested: the earlier one grows around the later one."""
    changed = True
    while changed:
        changed = False
        regions.sort(key=lambda r: (r.first, -r.last, r.depth))
        for index, outer in enumerate(regions):
            for inner in regions[index + 1 :]:
                if inner.first <= outer.last < inner.last:
                    outer.last = inner.last
                    changed = True
        if changed:
            regions = _join(regions)
    regions.sort(key=lambda r: (r.first, -r.last, r.depth))
    return regions


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
            name = f"{name} ({seen[name]}/{total[name]})"
        fences.append(Fence(name, region.delta, region.first, region.last))
    return fences


def _write(lines: list[_Line], fences: list[Fence], regions: list[_Region], marker: str) -> Buffer:
    before: dict[int, list[tuple[str, str]]] = {}
    after: dict[int, list[tuple[str, str]]] = {}
    for fence in fences:
        indent = _indent_at(lines, fence)
        start, end = f"{indent}# {marker} START: {fence.name}\n", f"{indent}# {marker} END: {fence.name}\n"
        if fence.last < fence.first:
            before.setdefault(fence.first, []).append((start + end, fence.delta))
        else:
            before.setdefault(fence.first, []).append((start, fence.delta))
            after.setdefault(fence.last, []).insert(0, (end, fence.delta))
    out: list[Run] = []
    for number, (line, _) in enumerate(lines, 1):
        out += [Run(text, None, 0, (), "fence") for text, _ in before.get(number, ())]
        out += line
        if number in after and line and not line[-1].text.endswith("\n"):
            out.append(Run("\n", None, 0, (), "fence"))
        out += [Run(text, None, 0, (), "fence") for text, _ in after.get(number, ())]
    return Buffer(out)


def _indent_at(lines: list[_Line], fence: Fence) -> str:
    for number in range(fence.first, max(fence.last, fence.first) + 1):
        if number <= len(lines):
            text = "".join(run.text for run in lines[number - 1][0])
            if text.strip():
                return text[: len(text) - len(text.lstrip(" \t\f"))]
    previous = "".join(run.text for run in lines[fence.first - 2][0]) if fence.first >= 2 else ""
    return previous[: len(previous) - len(previous.lstrip(" \t\f"))]
