"""Changes of one definition in the text of a release: such as may break who refers to it, and such as are compatible."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from tools.oracles.meaning import breaking, compatible
from tools.oracles.meaning.edits import CHANGES
from tools.oracles.meaning.sources import Sources
from tools.oracles.meaning.spots import Draw, NotHere, Spot
from tools.oracles.meaning.standins import last_name


@dataclass(frozen=True)
class Change:
    """One change of a release.

    Attributes:
        name: what is done.
        compatible: whether it is meant to break nothing.
        target: to what.
        files: new texts by module.
    """

    name: str
    compatible: bool
    target: str
    files: Mapping[str, str]


_TABLE = (breaking, compatible)
"""They fill the table of changes."""
COMPATIBLE = tuple(name for name, (compatible, _) in CHANGES.items() if compatible)


BREAKING = tuple(name for name, (compatible, _) in CHANGES.items() if not compatible)


def change(
    draw: Draw, sources: Sources, found: list[Spot], names: tuple[str, ...], copied: str, holder: str = ""
) -> Change | None:
    """A change by one of these names; None when luck has it that none suits.

    Args:
        draw: where luck comes from.
        sources: the release.
        found: what may be changed.
        names: of changes.
        copied: text of what is copied: what it needs itself is let be.
        holder: the class that this is a method of, as `module:name`: it stays where it is.
    """
    breaking.SOURCES[:] = [sources]
    found = [s for s in found if not _decorates(s) and ast.unparse(s.node) != copied]
    if not found:
        return None
    words = {n.id for n in ast.walk(ast.parse(copied)) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(ast.parse(copied)) if isinstance(n, ast.Attribute)
    }
    for _ in range(40):
        name, spot = draw.choice(names), draw.choice(found)
        compatible, function = CHANGES[name]
        if not compatible and spot.name in words:
            continue
        if name.startswith("move") and f"{spot.listing.module}:{spot.qualname}" == holder:
            continue
        try:
            files = function(draw, spot)
            for text in files.values():
                ast.parse(text)
        except (NotHere, SyntaxError, StopIteration):
            continue
        if all(sources.has(m) and text == sources.listing(m).text for m, text in files.items()):
            continue
        return Change(name, compatible, f"{spot.listing.module}:{spot.qualname}", files)
    return None


def _decorates(spot: Spot) -> bool:
    """Whether it makes classes what they are: without it the release itself would not work."""
    if any(last_name(d) == "dataclass_transform" for d in getattr(spot.node, "decorator_list", ())):
        return True
    classes = [n for n in spot.listing.tree.body if isinstance(n, ast.ClassDef)]
    return isinstance(spot.node, ast.ImportFrom) and any(
        last_name(d) == spot.name for n in classes for d in n.decorator_list
    )
