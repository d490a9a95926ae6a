"""What own code refers to, as places in the text of a release."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tools.oracles.meaning.sources import ROOT, Listing, Site, Sources
from tools.oracles.meaning.values import Held, Info

MOVED = "vllm.probe_moved"
"""A module that changes put things into."""


FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


Draw = random.Random


Files = dict[str, str]

T = TypeVar("T")


class NotHere(Exception):
    """The change does not suit the definition."""


def one_of(draw: Draw, found: Sequence[T]) -> T:
    """One of what a change may act on.

    Raises:
        NotHere: there is nothing.
    """
    if not found:
        raise NotHere
    return draw.choice(found)


@dataclass(frozen=True)
class Spot:
    """A definition that own code refers to.

    Attributes:
        listing: the module that it stands in.
        node: its statement.
        qualname: its path.
        owner: the class around it.
        chain: imports that lead to it: module, name, site.
        attribute: of an attribute, its name; `node` is then the class.
    """

    listing: Listing
    node: Any
    qualname: str
    owner: ast.ClassDef | None = None
    chain: tuple[tuple[str, str, Site], ...] = ()
    attribute: str = ""

    @property
    def name(self) -> str:
        """Its own name."""
        return self.qualname.rpartition(".")[2]


def spots(touched: Iterable[Any], sources: Sources) -> list[Spot]:
    """What may be changed of all that was looked at."""
    found: dict[str, Spot] = {}
    chain: list[tuple[str, str, Site]] = []
    items = list(touched)
    imports = [i for i in items if isinstance(i, tuple) and isinstance(i[2].node, ast.ImportFrom)]
    for item in items:
        if isinstance(item, tuple):
            module, name, site = item
            listing = sources.listing(module)
            chain = [
                i for i in imports if any((a.name == name) for a in i[2].node.names if (a.asname or a.name) == i[1])
            ]
            if isinstance(site.node, ast.ImportFrom) and listing.absolute(site.node).partition(".")[0] != ROOT:
                continue
            if isinstance(site.node, (*FUNCTION, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.ImportFrom)):
                spot = Spot(listing, site.node, name, chain=tuple(chain))
                found.setdefault(f"{module}:{name}", spot)
        elif isinstance(item, Info) and item.owner is not None and item.node.name not in {"__post_init__", "__new__"}:
            found.setdefault(item.origin, Spot(item.listing, item.node, item.qualname, item.owner))
        elif isinstance(item, Held) and item._what in {"attribute", "class attribute"}:
            qualname, _, name = item._where.rpartition(".")
            cls = _class_at(item._listing, qualname)
            if cls is not None:
                found.setdefault(
                    f"{item._listing.module}:{item._where}", Spot(item._listing, cls, item._where, attribute=name)
                )
    return list(found.values())


def _class_at(listing: Listing, qualname: str) -> ast.ClassDef | None:
    body: list[ast.stmt] = listing.tree.body
    node = None
    for name in qualname.split("."):
        node = next((n for n in body if isinstance(n, ast.ClassDef) and n.name == name), None)
        if node is None:
            return None
        body = node.body
    return node
