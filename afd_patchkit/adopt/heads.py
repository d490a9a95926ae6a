"""Deltas of the head of a function: parameters and decorators that are not upstream's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from afd_patchkit.adopt.texts import CodeText
from afd_patchkit.copies.canonical import Canonical, Decorator, key
from afd_patchkit.copies.checks import HARMLESS
from afd_patchkit.copies.pairing import CopyPair
from afd_patchkit.source.text import SourceFile, Span

Keys = dict[str, Any]


def head_deltas(pair: CopyPair) -> Iterator[tuple[str, Keys]]:
    """A delta for each parameter and decorator that differs, each with its name."""
    claimed = pair.hand.claims.text("signature")
    for word, keys in _parameters(pair.base, pair.wanted, pair.hand.file.source):
        yield (f"parameter {word}" if word in claimed else "UNEXPLAINED"), keys
    for keys in _decorators(pair):
        yield "UNEXPLAINED", keys


def _listed(node: ast.arguments) -> list[tuple[ast.arg, ast.expr | None, str]]:
    plain = [*node.posonlyargs, *node.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(node.defaults))
    found = [(a, d, "any") for a, d in zip(plain, [*defaults, *node.defaults], strict=True)]
    if node.vararg:
        found.append((node.vararg, None, "*"))
    found += [(a, d, "keyword-only") for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True)]
    if node.kwarg:
        found.append((node.kwarg, None, "**"))
    return found


def _parameters(base: Canonical, wanted: Canonical, file: SourceFile) -> Iterator[tuple[str, Keys]]:
    ours, theirs = _listed(base.node.args), _listed(wanted.node.args)
    origins = {a.arg: (a, d) for a, d, _ in _listed(wanted.origin.args)}
    known = {a.arg: (d, kind) for a, d, kind in ours}
    names = {a.arg for a, _, _ in theirs}
    for arg, _, _ in ours:
        if arg.arg not in names:
            yield arg.arg, {"parameter": {"remove": arg.arg}}
    moved = {a.arg for a, _, kind in theirs if a.arg in known and known[a.arg][1] != kind}
    last: str | None = None
    bare = not base.node.args.vararg and not base.node.args.kwonlyargs
    for arg, default, kind in theirs:
        text = _text(*origins[arg.arg], file)
        if arg.arg not in known:
            keys: Keys = {"add": CodeText(("*" if kind == "*" else "**" if kind == "**" else "") + text)}
            if kind == "keyword-only" and bare:
                keys["kind"] = "keyword-only"
            elif last is not None:
                keys["after"] = last
            elif ours:
                keys["before"] = ours[0][0].arg
            yield arg.arg, {"parameter": keys}
        elif arg.arg in moved:
            keys = {"replace": arg.arg}
            yield arg.arg, {"parameter": keys, "with": CodeText(text)}
        else:
            old = known[arg.arg][0]
            if (old is None) != (default is None) or (
                old is not None and default is not None and key(old) != key(default)
            ):
                yield arg.arg, {"parameter": {"replace": arg.arg}, "with": CodeText(text)}
            last = arg.arg


def _text(arg: ast.arg, default: ast.expr | None, file: SourceFile) -> str:
    start = file.node_span(arg).start
    end = file.node_span(default if default is not None else arg).end
    return " ".join(file.slice(Span(start, end)).split())


def _decorators(pair: CopyPair) -> Iterator[Keys]:
    """Changes of upstream's decorators; what stands in another order is left, and refused by the proof."""
    method = bool(pair.hand.classes)
    ours = pair.base.named(method=method)
    theirs = own_decorators(pair.wanted, pair)
    gone = [d for d in ours if d.key not in {t.key for t in theirs}]
    new = [d for d in theirs if d.key not in {o.key for o in ours}]
    for old in gone:
        by = next((d for d in new if d.word == old.word), None)
        if by is None:
            yield {"decorator": {"remove": CodeText(old.text)}}
        else:
            new.remove(by)
            yield {"decorator": {"replace": CodeText(old.text)}, "with": CodeText(by.text)}
    for added in new:
        kept = [d for d in theirs[: theirs.index(added)] if d.key in {o.key for o in ours}]
        place = {"after": CodeText(kept[-1].text)} if kept else {}
        yield {"decorator": {"add": CodeText(added.text), **place}}


def own_decorators(found: Canonical, pair: CopyPair) -> list[Decorator]:
    """The decorators of a copy, or of what is generated for it, that matter."""
    known = {d.word for d in pair.base.decorators}
    return [d for d in found.named(method=bool(pair.hand.classes)) if d.word in known or d.word not in HARMLESS]
