"""Undo the declared changes of one entry: what is left of the generated lines, put back in place of what was replaced.

The claim is laid out as the lines that it says were generated. Each is held against the line that was: new text must be what the
claim says; upstream text is whatever stands there, and goes into the restored symbol for libcst to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from afd_patchkit.assemble.proof.claims import Claim, ClaimedChange, Disagreement, Kept, Put, Renamed, all_changes

_WHITE = " \t\f"


@dataclass
class _Shift:
    """One change of indentation; it begins with the second line of its text."""

    remove: str
    add: str
    begun: bool = False


@dataclass(frozen=True)
class _Piece:
    """A piece of a line.

    Attributes:
        text: what stands there by the claim.
        start: offset of the upstream text that it is; -1 for new text.
        delta: the delta that put it there.
        new: the name that stands there in place of upstream's text.
        fence: it is a fence of a delta inside taken text.
    """

    text: str
    start: int = -1
    delta: str | None = None
    new: str | None = None
    fence: bool = False

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.start + len(self.text.encode())


@dataclass
class _Line:
    """A line by the claim: its pieces, what changes its indentation, innermost first, and the deltas that took text out of it."""

    pieces: list[_Piece] = field(default_factory=list)
    shifts: tuple[_Shift, ...] = ()
    cut: set[str | None] = field(default_factory=set)

    @property
    def text(self) -> str:
        """What stands there by the claim."""
        return _text(self.pieces)


@dataclass
class _Layout:
    """Lays the kept text and changes of a claim out as lines."""

    data: bytes
    renamed: Sequence[Renamed]
    lines: list[_Line] = field(default_factory=list)
    gone: list[tuple[int, int]] = field(default_factory=list)
    _open: bool = False
    _stack: list[_Shift] = field(default_factory=list)

    def kept(self, kept: Kept) -> None:
        """Add kept text, with what is changed in it."""
        at = kept.start
        for change in kept.changes:
            self._upstream(at, change.start)
            self._change(change)
            at = change.end
        self._upstream(at, kept.end)

    def _change(self, change: ClaimedChange) -> None:
        held = sorted((p.start, p.end) for p in change.parts if isinstance(p, Kept))
        at = change.start
        for start, end in [*held, (change.end, change.end)]:
            if at < start:
                self.gone.append((at, start))
            at = max(at, end)
        if not change.parts:
            self._line().cut.add(change.delta)
        for part in change.parts:
            if isinstance(part, Kept):
                self._stack.append(_Shift(part.remove, part.add))
                self.kept(part)
                self._stack.pop()
            else:
                if not part.text:
                    self._line().cut.add(change.delta)
                for line in _lines(part.text):
                    self._add(_Piece(line, delta=change.delta, fence=part.fence))

    def _upstream(self, start: int, end: int) -> None:
        for name in self.renamed:
            if name.span is not None and start <= name.span[0] and name.span[1] <= end:
                self._verbatim(start, name.span[0])
                old = self.data[name.span[0] : name.span[1]].decode()
                if not name.new:
                    self._line().cut.add(None)
                self._add(_Piece(old, name.span[0], new=name.new))
                self.gone.append(name.span)
                start = name.span[1]
        self._verbatim(start, end)

    def _verbatim(self, start: int, end: int) -> None:
        for line in _lines(self.data[start:end].decode()):
            self._add(_Piece(line, start))
            start += len(line.encode())

    def _line(self) -> _Line:
        if not self._open:
            self.lines.append(_Line())
            self._open = True
        return self.lines[-1]

    def _add(self, piece: _Piece) -> None:
        line = self._line()
        if not line.pieces:
            line.shifts = tuple(s for s in reversed(self._stack) if s.begun)
        line.pieces.append(piece)
        if piece.text.endswith("\n"):
            self._open = False
            for shift in self._stack:
                shift.begun = True

    def finish(self) -> list[_Line]:
        """The lines that are left: fences go, and what removals have emptied."""
        if self.lines and not self.lines[-1].pieces and len(self.lines) > 1:
            self.lines[-2].cut |= self.lines.pop().cut
        left: list[_Line] = []
        for line in self.lines:
            if any(p.fence for p in line.pieces) or (line.cut and not line.text.strip()):
                self.gone += [(p.start, p.end) for p in line.pieces if p.start >= 0]
            else:
                left.append(line)
        return left


def _text(pieces: Sequence[_Piece]) -> str:
    return "".join(p.text if p.new is None else p.new for p in pieces)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _moved(pieces: list[_Piece], remove: str, add: str, gone: list[tuple[int, int]]) -> list[_Piece]:
    """ClaimedChange the indentation of a line that has it; Python counts it from the last form feed on."""
    text = "".join(p.text for p in pieces)
    feed = text.rfind("\f", 0, len(text) - len(text.lstrip(_WHITE))) + 1
    if not text.startswith(remove, feed):
        return pieces
    front, rest = _cut(pieces, feed)
    dropped, rest = _cut(rest, len(remove))
    gone += [(p.start, p.end) for p in dropped if p.start >= 0]
    return [*front, *([_Piece(add)] if add else []), *rest]


def _cut(pieces: list[_Piece], count: int) -> tuple[list[_Piece], list[_Piece]]:
    """The first `count` characters, and the rest."""
    front: list[_Piece] = []
    for number, piece in enumerate(pieces):
        if count < len(piece.text):
            rest = [replace(piece, text=piece.text[count:], start=piece.start + (count if piece.start >= 0 else 0))]
            return [*front, replace(piece, text=piece.text[:count])] if count else front, [*rest, *pieces[number + 1 :]]
        front.append(piece)
        count -= len(piece.text)
    return front, []


@dataclass
class Undo:
    """Undoes one entry.

    Args:
        claim: what is claimed of it.
        lines: its generated lines, fences included; the first one has the number `first`.
        first: 1-based number of the first line in the module.
        in_string: numbers of lines that begin inside a string.
        fences: line number to `START` or `END` and the name.
    """

    claim: Claim
    lines: Sequence[str]
    first: int
    in_string: set[int]
    fences: dict[int, tuple[str, str]]
    problems: list[Disagreement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.data = self.claim.upstream.encode()

    def restored(self) -> list[str]:
        """The text of each statement of the symbol, restored; `problems` says what could not be."""
        groups, gone = self._claimed()
        numbered, opened = self._generated()
        wanted = [line for group in groups for line in group]
        if len(wanted) != len(numbered):
            self._length(wanted, numbered)
            return []
        kept: list[tuple[int, int, str]] = []
        for line, (number, text) in zip(wanted, numbered, strict=True):
            kept += self._match(line, number, text, gone)
            self._fenced(line, number, opened[number])
        self._names_of_fences()
        if self.problems:
            return []
        return [self._assembled(part, kept, gone) for part in self.claim.parts]

    # ---- both sides as lines ------------------------------------------------------------------------------------------

    def _claimed(self) -> tuple[list[list[_Line]], list[tuple[int, int]]]:
        """The lines by the claim, part by part, with what stands between the parts; and the upstream bytes that went."""
        groups: list[list[_Line]] = []
        gone: list[tuple[int, int]] = []
        for index, part in enumerate(self.claim.parts):
            if index:
                between = self.data[self.claim.parts[index - 1].end : part.start].decode()
                blank = between if between and not between.strip() else "\n"
                groups.append([_Line([_Piece(line)]) for line in _lines(blank)])
            layout = _Layout(self.data, self.claim.renamed)
            layout.kept(part)
            lines = layout.finish()
            if lines and lines[-1].pieces and not lines[-1].text.endswith("\n"):
                lines[-1].pieces.append(_Piece("\n"))
            groups.append(lines)
            gone += layout.gone
        return groups, gone

    def _generated(self) -> tuple[list[tuple[int, str]], dict[int, tuple[str, ...]]]:
        """The generated lines without the fences, and the fences that each stands in."""
        stack: list[str] = []
        seen: set[str] = set()
        numbered: list[tuple[int, str]] = []
        opened: dict[int, tuple[str, ...]] = {}
        for number, text in enumerate(self.lines, self.first):
            fence = self.fences.get(number)
            if fence is None:
                numbered.append((number, text))
                opened[number] = tuple(stack)
            elif fence[0] == "START":
                if fence[1] in seen:
                    self._problem(f"two fences are named {fence[1]!r}", number)
                seen.add(fence[1])
                stack.append(fence[1])
            elif not stack or stack.pop() != fence[1]:
                self._problem(f"the fence {fence[1]!r} is not closed in order", number)
        if stack:
            self._problem(f"the fence {stack[-1]!r} is not closed", self.first)
        return numbered, opened

    # ---- line by line -------------------------------------------------------------------------------------------------

    def _match(
        self, line: _Line, number: int, text: str, gone: list[tuple[int, int]]
    ) -> Iterator[tuple[int, int, str]]:
        """What stands in a generated line for each piece of upstream text in it."""
        pieces = self._placed(line, number, gone)
        if len(pieces) == 1 and pieces[0].start >= 0 and pieces[0].new is None:
            yield pieces[0].start, pieces[0].end, text
            return
        exact = [p for p in pieces if p.start >= 0 and p.new is None]
        found = self._pattern(pieces, kept="(.{%d})").fullmatch(text)
        if found is None and len(exact) == 1:
            found = self._pattern(pieces, kept="(.*)").fullmatch(text)
        if found is None:
            self._problem("a line is not what its delta makes of upstream's", number, _text(pieces), text)
            return
        for piece, held in zip(exact, found.groups(), strict=True):
            yield piece.start, piece.end, held

    def _placed(self, line: _Line, number: int, gone: list[tuple[int, int]]) -> list[_Piece]:
        """The pieces of a line at the indentation that it has in the generated module."""
        pieces = line.pieces
        if number in self.in_string or not line.text.strip():
            return pieces
        for shift in line.shifts:
            pieces = _moved(pieces, shift.remove, shift.add, gone)
        upstreams = all(p.start >= 0 for p in line.pieces)
        indent = self.claim.indent
        text = "".join(p.text for p in pieces)
        stays = upstreams and not text[: len(text) - len(text.lstrip(_WHITE))].rpartition("\f")[2].startswith(indent)
        pieces = _moved(pieces, indent, "", gone)
        return _moved(pieces, "", "    ", gone) if self.claim.group is not None and not stays else pieces

    def _pattern(self, pieces: Sequence[_Piece], *, kept: str | None) -> re.Pattern[str]:
        """The shape of a line; `kept` stands for upstream text (`%d` for its length), None for just that text."""
        out = ""
        for piece in pieces:
            if piece.new is not None:
                out += re.escape(piece.new)
            elif piece.start < 0:
                out += self._put(piece.text)
            elif kept is None:
                out += re.escape(piece.text)
            else:
                out += kept.replace("%d", str(len(piece.text)))
        return re.compile(out, re.DOTALL)

    def _put(self, text: str) -> str:
        """New text, in which names may have been changed as declared."""
        names = {r.old: r.new for r in self.claim.renamed if r.span is None}
        if not names:
            return re.escape(text)
        shape = re.compile("|".join(re.escape(old) for old in sorted(names, key=len, reverse=True)))
        out, at = "", 0
        for found in shape.finditer(text):
            out += re.escape(text[at : found.start()])
            out += f"(?:{re.escape(names[found[0]])}|{re.escape(found[0])})"
            at = found.end()
        return out + re.escape(text[at:])

    def _fenced(self, line: _Line, number: int, opened: Sequence[str]) -> None:
        """Whatever a delta changed stands in one of its fences."""
        deltas = {p.delta for p in line.pieces if p.start < 0 and p.text.strip()} | line.cut
        named = set[str]().union(*map(_deltas_of, opened))
        for delta in sorted(d for d in deltas if d is not None):
            if delta not in named:
                self._problem(f"the delta {delta!r} changed a line outside its fences", number)

    def _names_of_fences(self) -> None:
        """Each delta that changed something has a fence, and each fence a delta."""
        changes = [change for part in self.claim.parts for change in all_changes(part)]
        deltas = {c.delta for c in changes if c.delta is not None}
        inner = "".join(p.text for c in changes for p in c.parts if isinstance(p, Put) and p.fence)
        here = range(self.first, self.first + len(self.lines))
        names = {name for number, (_, name) in self.fences.items() if number in here}
        for name in sorted(names):
            if deltas.isdisjoint(_deltas_of(name)) and f": {name}\n" not in inner + "\n":
                self._problem(f"no delta is named as the fence {name!r}", self.first)
        for delta in sorted(deltas.difference(*map(_deltas_of, names))):
            self._problem(f"the delta {delta!r} has no fence", self.first)

    # ---- the symbol ---------------------------------------------------------------------------------------------------

    def _assembled(self, part: Kept, kept: Sequence[tuple[int, int, str]], gone: Sequence[tuple[int, int]]) -> str:
        """One statement: what was kept, from the generated module; what was replaced, from upstream."""
        pieces = sorted([*kept, *((start, end, None) for start, end in gone)], key=lambda p: (p[0], p[1]))
        out: list[str] = []
        at = part.start
        for start, end, text in pieces:
            if start < part.start or end > part.end:
                continue
            original = self.data[start:end].decode()
            if start < at:
                if text is not None and text != original:  # kept more than once
                    self._problem("upstream text that a delta keeps is not upstream's", 0, original, text)
                continue
            if start > at:
                break
            out.append(original if text is None else text)
            at = end
        if at < part.end:
            self._problem("upstream text is neither kept nor replaced", 0, self.data[at : part.end].decode(), "")
        return "".join(out)

    def _length(self, wanted: Sequence[_Line], numbered: Sequence[tuple[int, str]]) -> None:
        """Say which line is the first that is missing, or that the claim does not explain."""
        message = f"it should have {len(wanted)} lines besides its fences, and has {len(numbered)}"
        for line, (number, text) in zip(wanted, numbered, strict=False):
            pieces = self._placed(line, number, [])
            if self._pattern(pieces, kept=None).fullmatch(text) is None:
                self._problem(message, number, _text(pieces), text)
                return
        if len(wanted) > len(numbered):
            number = numbered[-1][0] if numbered else self.first
            self._problem(message, number, wanted[len(numbered)].text, "")
        else:
            number, text = numbered[len(wanted)]
            self._problem(message, number, "", text)

    def _problem(self, message: str, line: int, upstream: str | None = None, generated: str | None = None) -> None:
        details: tuple[str, ...] = ()
        if upstream is not None and generated is not None:
            details = (f"expected   {_shown(upstream)}", f"generated  {_shown(generated)}")
        self.problems.append(Disagreement(self.claim.ref, message, details, line=line))


def _shown(text: str) -> str:
    return text.rstrip("\n") or "(nothing)"


def _deltas_of(fence: str) -> set[str]:
    """What a delta may be called whose fence has this name."""
    return {fence, _NUMBERED.sub("", fence)}


_NUMBERED = re.compile(r" \(\d+/\d+\)\Z")
