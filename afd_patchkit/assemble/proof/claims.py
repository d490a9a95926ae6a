"""What the engine claims about one generated entry: plain data, which the proof checks against the two files.

Offsets are bytes of the upstream file. White space is what a claim says it is before the entry is put into its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Put:
    """Text that a delta puts in.

    Attributes:
        text: the text.
        origin: for text taken from another symbol: that file's path, its bytes and the offset there.
        fence: it is a fence line of a delta inside taken text.
    """

    text: str
    origin: tuple[str, bytes, int] | None = None
    fence: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """Upstream bytes that stand in the output, with changes in them.

    Attributes:
        start: first byte.
        end: the byte behind the last one.
        changes: what is changed in it, in order; disjoint.
        remove: indentation that its lines, the first one aside, have upstream.
        add: indentation that they get instead.
    """

    start: int
    end: int
    changes: tuple[ClaimedChange, ...] = ()
    remove: str = ""
    add: str = ""


@dataclass(frozen=True, slots=True)
class ClaimedChange:
    """Upstream bytes that a delta replaces, and what stands there instead.

    Attributes:
        delta: name of the delta; None for a delegate's own body.
        start: first byte.
        end: the byte behind the last one.
        parts: new text, and upstream text that stays.
    """

    delta: str | None
    start: int
    end: int
    parts: tuple[Put | Kept, ...] = ()

    @property
    def put(self) -> str:
        """The new text of all parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Put))


@dataclass(frozen=True, slots=True)
class Renamed:
    """A declared change of a name.

    Attributes:
        old: what stood there.
        new: what stands there now.
        span: the upstream bytes; None for a name in the text of a delta.
    """

    old: str
    new: str
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class Claim:
    """One entry: what was made of which upstream symbol.

    Attributes:
        ref: `module.py::name`.
        name: its name in the generated module.
        group: the generated class that it is a member of; None at module level.
        qualname: its name upstream.
        path: the upstream file.
        upstream: text of that file.
        indent: indentation of the symbol upstream.
        parts: the statements that make up the symbol, in order.
        renamed: declared changes of names.
        told: whether the comment above the entry lists each change of a name.
        edits: what the lock says of each delta: name, first byte, last byte, digest of the new text.
        names: what the lock says of names that were changed: the bytes.
    """

    ref: str
    name: str
    group: str | None
    qualname: str
    path: str
    upstream: str
    indent: str
    parts: tuple[Kept, ...]
    renamed: tuple[Renamed, ...] = ()
    told: bool = True
    edits: frozenset[tuple[str, int, int, str]] = frozenset()
    names: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class OwnedClaim:
    """An owned file whose statements, its imports aside, stand in the generated module.

    Attributes:
        ref: `module.py::name`.
        path: the owned file.
        text: its text.
    """

    ref: str
    path: str
    text: str


@dataclass(frozen=True)
class Disagreement:
    """What the proof does not accept.

    Attributes:
        ref: the entry.
        message: what is wrong.
        details: both texts, where they differ.
        upstream: path and 1-based line there; None when no place is meant.
        line: 1-based line of the generated module; 0 when no place is meant.
        unread: libcst cannot read the upstream file, so nothing is proved and nothing contradicted.
    """

    ref: str
    message: str
    details: tuple[str, ...] = ()
    upstream: tuple[str, int] | None = None
    line: int = 0
    unread: bool = False


def all_changes(kept: Kept) -> Iterator[ClaimedChange]:
    """The changes in `kept`, those inside others too."""
    for change in kept.changes:
        yield change
        for part in change.parts:
            if isinstance(part, Kept):
                yield from all_changes(part)
