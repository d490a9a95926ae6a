"""The second proof: each entry of a generated module is its upstream symbol, declared changes aside.

It shares nothing with the first one (`verify`): no `ast`, no tokens or spans of the engine. libcst reads the upstream file and the
generated module; the fences are dropped and the declared changes undone; the trees must be equal, white space and comments included.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from afd_patchkit.assemble.proof import trees
from afd_patchkit.assemble.proof.claims import Claim, Disagreement, OwnedClaim, all_changes
from afd_patchkit.assemble.proof.undo import Undo

_SHOWN = 12


def prove(text: str, claims: Sequence[Claim | OwnedClaim], marker: str) -> list[Disagreement]:
    """What is not as claimed; nothing when each entry is proved.

    Args:
        text: the generated module.
        claims: its entries.
        marker: comment prefix of the fences.
    """
    found: list[Disagreement] = []
    readable: list[Claim | OwnedClaim] = []
    for claim in claims:
        unread = _unread(claim)
        if unread is None:
            readable.append(claim)
        else:
            found.append(unread)
    try:
        tree = trees.read_generated(text, marker)
    except cst.ParserSyntaxError as error:
        message = f"libcst cannot read the generated module: {error.message}"
        return [*found, *(Disagreement(c.ref, message, line=error.raw_line, unread=bool(found)) for c in readable)]
    for claim in readable:
        found += _owned(tree, claim) if isinstance(claim, OwnedClaim) else _copied(tree, claim)
    return found


def _unread(claim: Claim | OwnedClaim) -> Disagreement | None:
    """What is said when libcst cannot read the claim's own file; Python has read it."""
    try:
        if isinstance(claim, OwnedClaim):
            trees.parse(claim.text)
        else:
            trees.definitions(claim.upstream)
    except cst.ParserSyntaxError as error:
        message = f"libcst cannot read {claim.path}: {error.message}"
        return Disagreement(claim.ref, message, upstream=(claim.path, error.raw_line), unread=True)
    return None


def _owned(tree: trees.GeneratedTree, claim: OwnedClaim) -> Iterator[Disagreement]:
    """The statements of an owned file, the docstring and imports at its top aside, stand in the module, in a row."""
    module = trees.parse(claim.text)
    body = list(module.body)
    while body and _is_preamble(body[0]):
        del body[0]
    if not body:
        return
    for start in range(len(tree.body) - len(body) + 1):
        if _same(module.default_indent, body, tree.indent, tree.body[start : start + len(body)]):
            return
    yield Disagreement(claim.ref, f"the module does not hold the statements of {claim.path} as they stand there")


def _is_preamble(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.If):
        return re.fullmatch(r"(\w+\.)?TYPE_CHECKING", cst.Module([]).code_for_node(node.test)) is not None
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(small, (cst.Import, cst.ImportFrom))
        or (isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString))
        for small in node.body
    )


def _same(indent: str, part: Sequence[cst.CSTNode], other: str, module: Sequence[cst.CSTNode]) -> bool:
    """Whether these are the same statements, what stands between them included."""
    pairs = list(zip(part, module, strict=True))
    return all(trees.CstDefinition(a, indent).equals(trees.CstDefinition(b, other)) for a, b in pairs) and all(
        trees.between(one, a) == trees.between(two, b) for (one, two), (a, b) in pairwise(pairs)
    )


def _copied(tree: trees.GeneratedTree, claim: Claim) -> Iterator[Disagreement]:
    yield from _recorded(claim)
    places = tree.places.get((claim.group, claim.name), [])
    if len(places) != len(claim.parts):
        yield Disagreement(
            claim.ref,
            f"{claim.name} is defined {len(places)} times in the module, and {len(claim.parts)} times upstream",
        )
        return
    yield from _told(claim, places[0])
    changed = any(part.changes for part in claim.parts)
    fences = tree.fences if changed else {}  # without deltas a comment that looks like a fence is upstream's
    first, last = _reach(tree, fences, places)
    undo = Undo(claim, tree.lines[first - 1 : last], first, tree.in_string, fences)
    restored = undo.restored()
    yield from undo.problems
    if not undo.problems:
        yield from _compared(claim, restored, first)


def _reach(
    tree: trees.GeneratedTree, fences: dict[int, tuple[str, str]], places: Sequence[trees.CstPlace]
) -> tuple[int, int]:
    """First and last line of an entry: fences around it belong to it, and comments at the end of its last block."""
    first, last = places[0].first, places[-1].last
    indent = len(tree.lines[first - 1]) - len(tree.lines[first - 1].lstrip())
    top = at = first
    while at - 1 in tree.comments:
        at -= 1
        if at in fences:
            kind, name = fences[at]
            while kind == "END" and fences.get(at) != ("START", name) and at > 1:
                at -= 1
            top = at
    at = last + 1
    while at <= len(tree.lines) and (at in tree.comments or not tree.lines[at - 1].strip()):
        if at in fences:
            kind, name = fences[at]
            while kind == "START" and fences.get(at) != ("END", name) and at < len(tree.lines):
                at += 1
            last = at
        elif at in tree.comments:
            if tree.comments[at] <= indent:
                break  # what stands above the next entry
            last = at
        at += 1
    return top, last


def _recorded(claim: Claim) -> Iterator[Disagreement]:
    """The changes are the ones that the lock declares."""
    changes = [c for part in claim.parts for c in all_changes(part) if c.delta is not None]
    made = {(c.delta, c.start, c.end, hashlib.sha256(c.put.encode()).hexdigest()[:16]) for c in changes}
    if made != claim.edits:
        names = sorted({str(one[0]) for one in made ^ claim.edits})
        yield Disagreement(claim.ref, f"the lock declares other changes than were made: {', '.join(names)}")
    spans = {name.span for name in claim.renamed if name.span is not None}
    if spans != claim.names:
        yield Disagreement(
            claim.ref, f"the lock declares {len(claim.names)} changed names, and {len(spans)} were changed"
        )
    for change in changes:
        for part in change.parts:
            origin = getattr(part, "origin", None)
            if origin is not None and not origin[1].startswith(part.text.encode(), origin[2]):  # type: ignore[union-attr]
                yield Disagreement(claim.ref, f"text that {change.delta!r} takes from {origin[0]} is not there")


def _told(claim: Claim, place: trees.CstPlace) -> Iterator[Disagreement]:
    """The comment above the entry names each name that was changed."""
    if not claim.told:
        return
    said = re.sub(r"\s", "", "".join(line.lstrip("#") for line in place.above))
    for name in claim.renamed:
        old, new = (re.sub(r"\s", "", text) for text in (name.old, name.new))
        if f"{old}->{new}" not in said and f"{old}->" not in said and f"{new};upstream:{old}" not in said:
            yield Disagreement(
                claim.ref,
                f"`{name.old}` became `{name.new}`, which the comment above the entry does not say",
                line=place.first,
            )


def _compared(claim: Claim, restored: Sequence[str], line: int) -> Iterator[Disagreement]:
    """Each restored statement is one of those that the upstream file has under the symbol's name."""
    candidates = trees.definitions(claim.upstream).get(claim.qualname, ())
    for part, text in zip(claim.parts, restored, strict=True):
        number = claim.upstream.encode()[: part.start].count(b"\n") + 1
        try:
            found = trees.statement(text)
        except cst.ParserSyntaxError as error:
            yield Disagreement(
                claim.ref,
                f"what is left without the deltas is not Python: {error.message}",
                tuple(text.split("\n")[:_SHOWN]),
                (claim.path, number),
                line,
            )
            continue
        if found is not None and any(found.equals(one) for one in candidates):
            continue
        original = claim.upstream.encode()[part.start : part.end].decode()
        yield Disagreement(
            claim.ref,
            "without its deltas it is not upstream's",
            tuple(_difference(original, text)),
            (claim.path, number),
            line,
        )


def _difference(upstream: str, restored: str) -> list[str]:
    """The lines that differ, both sides."""
    lines = difflib.unified_diff(
        upstream.split("\n"), restored.split("\n"), "upstream", "generated, deltas undone", lineterm="", n=1
    )
    found = [line.replace("\t", "\\t") for line in lines]
    return found[:_SHOWN] or ["the lines are equal: libcst finds this text under no definition of that name"]
