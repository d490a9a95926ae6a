"""Two upstream functions that were fused into one copy, taken apart again."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import replace

from afd_patchkit.copies.canonical import Canonical, key
from afd_patchkit.copies.judging import Portion
from afd_patchkit.copies.pairing import CopyFinder, CopyPair
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.syntax import blocks


def split(pair: CopyPair, part: Portion, symbol: Symbol, finder: CopyFinder) -> list[CopyPair]:
    """The copy of each of the two functions: one without the branch that holds the other's body, one that is that body.

    What stands in front of the branch is in both. The assignment that names the second function is not looked for: both halves keep
    the pair's own.

    Args:
        pair: the copy that is both.
        part: the change that holds the second body.
        symbol: the second function.
        finder: gives it in canonical form.
    """
    body = pair.wanted.node.body
    inside = {id(s) for s in part.wanted}
    first = [s for s in body if id(s) not in inside]
    at = next(n for n, s in enumerate(body) if id(s) in inside)
    base = finder.base(symbol)
    second = [*body[:at], *_body_of(part.wanted, [key(s) for s in base.node.body])]
    return [
        replace(pair, wanted=_with(pair.wanted, first)),
        replace(pair, wanted=_with(pair.wanted, second), base=base, symbol=symbol, install=None),
    ]


def _body_of(wanted: Sequence[ast.stmt], keys: Sequence[str]) -> Sequence[ast.stmt]:
    """The run of statements in a change that is most of the other body."""
    runs: list[Sequence[ast.stmt]] = [wanted, *(b.body for s in wanted for b in blocks(s))]
    return max(runs, key=lambda run: sum(key(s) in keys for s in run))


def _with(whole: Canonical, body: list[ast.stmt]) -> Canonical:
    node = copy.copy(whole.node)
    node.__dict__.pop("_key", None)
    node.body = body
    found = replace(whole, node=node)
    found.free, found.late = dict(whole.free), dict(whole.late)
    return found
