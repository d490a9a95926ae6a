"""What upstream changed about an entry as a whole: parameters, decorators, results, attributes read."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from afd_patchkit.assemble.record import symbol_record
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import Entry
from afd_patchkit.source.forward import forwarding
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.signature import Difference, compare, signature

_QUIET = frozenset({"added", "removed", "annotation", "returns"})
"""Changes of parameters that callers meet loudly or not at all; the copy has them as upstream has them."""


def differences(base: Symbol | None, new: Symbol) -> tuple[Difference, ...]:
    """What changed about the signature; empty without the old text."""
    if base is None or not _function(base) or not _function(new):
        return ()
    return compare(signature(base.node, base.file), signature(new.node, new.file))


def _function(symbol: Symbol) -> bool:
    return isinstance(symbol.node, (ast.FunctionDef, ast.AsyncFunctionDef))


def signature_findings(
    ref: str, entry: Entry, record: Mapping[str, Any], base: Symbol | None, new: Symbol
) -> Iterator[Finding]:
    """Findings about what callers see of a definition: parameters, decorators, results.

    Args:
        ref: the entry, as findings call it.
        entry: the entry.
        record: what the lock holds of the old symbol.
        base: the old symbol; None when it is not at hand.
        new: the symbol now.
    """
    now = symbol_record(new)

    def say(code: str, message: str, details: Sequence[str] = (), help: str | None = None) -> Finding:
        return finding(
            code, message, entry=ref, manifest=entry.where, upstream=new.position, details=tuple(details), help=help
        )

    found = differences(base, new)
    if base is None:
        yield from _from_digests(record, now, say)
    decorators = [d for d in found if d.change.startswith("decorator")]
    if decorators:
        yield say("PK530", "upstream changed the decorators", [d.message for d in decorators], _DECORATORS)
    others = [d for d in found if d not in decorators]
    loud = [d for d in others if d.change not in _QUIET]
    if entry.kind == "delegate":
        named = _named(entry, new)
        loud = others if named is None else [d for d in others if d.change not in _QUIET or d.name in named]
        loud += [d for d in others if d not in loud and "added required" in d.message]
    if loud:
        yield say(
            "PK531",
            "upstream changed the signature so that calls may mean something else",
            [d.message for d in others],
            "Look at every caller of ours, and at the body of a delegate.",
        )
    elif others:
        yield say("PK651", "upstream changed the signature; the copy has it, too", [d.message for d in others])
    if record.get("shape", now.get("shape")) != now.get("shape"):
        yield say(
            "PK532",
            "upstream changed what the function returns or yields",
            [f"was: {', '.join(record['shape']) or 'nothing'}", f"now: {', '.join(now.get('shape', ())) or 'nothing'}"],
            "Deltas that return early, and our callers, must hand out and take the new shape.",
        )
    more = new_attributes(record, now)
    if more:
        yield say("PK653", f"new attributes read from parameters: {', '.join(more)}")


def _named(entry: Entry, symbol: Symbol) -> frozenset[str] | None:
    """The parameters that a delegate's body names, where it gives on all parameters in every call of the original; else None."""
    node = symbol.node
    if entry.body is None or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    tree = ast.parse(textwrap.dedent(entry.body.text))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    originals = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "__original__"]
    if not originals or not all(forwarding(c, dots=True) for c in originals):
        return None
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names |= {k.arg for c in calls if forwarding(c, dots=True) for k in c.keywords if k.arg is not None}
    return frozenset(names)


_DECORATORS = (
    "They come with the copy. Do the deltas, and what replaces the function at run time, still fit under them?"
)


def new_attributes(record: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """`parameter.attribute` that the new text reads and the old one did not; parameters that are new are left out."""
    if "reads" not in record:
        return ()
    old = set(record.get("parameters", ()))
    return tuple(r for r in now.get("reads", ()) if r not in record["reads"] and r.partition(".")[0] in old)


def _from_digests(record: Mapping[str, Any], now: Mapping[str, Any], say: Any) -> Iterator[Finding]:
    """Without the old text: which part changed, by the lock's digests; names of parameters are known."""
    if record.get("decorators") != now.get("decorators"):
        yield say("PK530", "upstream changed the decorators", ["the old text is not at hand"], _DECORATORS)
    if record.get("signature") == now.get("signature"):
        return
    old, new = list(record.get("parameters", ())), list(now.get("parameters", ()))
    words = [f"parameter {n} removed" for n in old if n not in new] + [
        f"parameter {n} added" for n in new if n not in old
    ]
    rest = [n for n in old if n in new]
    if words and rest == [n for n in new if n in old]:
        yield say("PK651", "upstream changed the signature; the copy has it, too", words)
    else:
        details = [*words, "order, kind, default or annotation; the old text is not at hand"]
        yield say("PK531", "upstream changed the signature so that calls may mean something else", details)
