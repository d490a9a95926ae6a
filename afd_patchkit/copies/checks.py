"""Findings about one pair of a hand copy and its upstream function."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from afd_patchkit.copies.canonical import Canonical, key, origin
from afd_patchkit.copies.difference import first_line, last_line
from afd_patchkit.copies.judging import Compared, Portion
from afd_patchkit.copies.marks import HandFence, parameters_named
from afd_patchkit.copies.meaning import FileNames
from afd_patchkit.copies.pairing import CopyFinder, CopyPair
from afd_patchkit.copies.reading import HandFunction
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.references.calls import Shape, listed, misfit
from afd_patchkit.references.things import Function
from afd_patchkit.source.decorators import changing, decorator_names
from afd_patchkit.source.locate import FunctionNode, Symbol
from afd_patchkit.source.signature import Difference, compare
from afd_patchkit.source.syntax import FUNCTION, blocks

_SILENT = ("annotation", "returns")


def about(hand: HandFunction) -> str:
    """How findings name a hand copy."""
    return f"{hand.file.shown}::{hand.qualname}"


def say(code: str, message: str, hand: HandFunction, **more: Any) -> Finding:
    """A finding about a hand copy, at its definition unless `generated` says otherwise.

    Args:
        code: the finding's code.
        message: what is wrong.
        hand: the hand copy.
        more: what else `finding` takes.
    """
    return finding(code, message, entry=about(hand), **{"generated": hand.position, **more})


def fence_findings(hand: HandFunction) -> Iterator[Finding]:
    """Fences that are left open, only closed, or closed without their name."""
    for fence in hand.fences:
        at = hand.file.at(fence.start)
        if fence.stray:
            yield say("PK702", f"an END closes a fence {fence.name!r} that no START opens", hand, generated=at,
                      help="Write the START, or delete the END.")  # fmt: skip
        elif fence.end is None:
            yield say("PK702", f"the fence {fence.name!r} is left open", hand, generated=at,
                      help="Close it with its END in the same function.")  # fmt: skip
        elif not fence.closing:
            yield say("PK703", f"the END of fence {fence.name!r} names none", hand, generated=hand.file.at(fence.end),
                      help=f"Write `PATCH END: {fence.name}`.")  # fmt: skip
        elif fence.closing != fence.name:
            message = f"fence {fence.name!r} is closed by an END that names {fence.closing!r}"
            yield say("PK703", message, hand, generated=hand.file.at(fence.end),
                      help="Repeat the START's name; if another fence is meant, its own END is missing.")  # fmt: skip


def pair_findings(judged: Compared, finder: CopyFinder) -> Iterator[Finding]:
    """All findings about one pair but those about places elsewhere."""
    pair = judged.pair
    yield from _changes(judged, finder)
    yield from _decorators(judged)
    yield from _signature(judged, finder)
    if not pair.delegates:
        yield from _wide(judged)
    yield from _calls(pair, finder)
    yield from _names(pair, finder)


# ---- changes --------------------------------------------------------------------------------------------------------


def _changes(judged: Compared, finder: CopyFinder) -> Iterator[Finding]:
    pair, hand = judged.pair, judged.pair.hand
    fused = {id(part): other for part in judged.unfenced if (other := fused_with(part, pair, finder)) is not None}
    for part in judged.unfenced:
        if id(part) in fused:
            symbol = fused[id(part)]
            count = part.lines[1] - part.lines[0] + 1
            yield say(
                "PK710",
                f"{count} lines are the body of {symbol.reference}, fused into the copy of {pair.symbol.reference}",
                hand,
                generated=hand.file.at(part.lines[0]),
                upstream=symbol.position,
                help="Make two copies, each assigned to its own class.",
            )
    plain = [part for part in judged.unfenced if id(part) not in fused]
    if not hand.fences:
        changed = [describe(p) for p in plain]
        if changed or pair.evidence != "override":
            said = f"with {len(changed)} changes" if len(changed) != 1 else "with one change"
            yield say(
                "PK706",
                f"{hand.qualname} is a copy of {pair.symbol.reference} {said if changed else 'without any change'}, and has no fence",
                hand,
                upstream=pair.symbol.position,
                details=tuple(changed[:8]) + ((f"and {len(changed) - 8} more",) if len(changed) > 8 else ()),
                help="Fence what is changed, or adopt it." if changed else "Delete it, if nothing needs the copy.",
            )
        return
    for part in plain:
        lines = part.upstream_lines
        yield say(
            "PK705",
            f"outside of every fence: {describe(part)}",
            hand,
            generated=hand.file.at(part.lines[0] or hand.lines[0]),
            upstream=Position(pair.symbol.file.path, lines[0]) if lines else pair.symbol.position,
            help="Fence the change, or take upstream's text back.",
        )


def describe(part: Portion) -> str:
    """One change in words, with the lines of both sides."""
    here = _range("line", part.lines)
    there = _range("upstream's line", part.upstream_lines) if part.upstream_lines else ""
    if not part.wanted:
        first, last = part.lines
        where = f"between lines {last} and {first}" if last < first else f"at {here}"
        return f"{there} {'is' if there.startswith(_ONE) else 'are'} missing {where}"
    if not part.base:
        return f"{here} {'is' if part.lines[0] == part.lines[1] else 'are'} not upstream's"
    if part.change.sort == "head":
        return f"the head in {here} is not that of {there}"
    if part.change.sort == "clauses":
        return f"the clauses of the statement in {here} are not those of {there}"
    return f"{here} differ{'s' if part.lines[0] == part.lines[1] else ''} from {there}"


_ONE = "upstream's line "


def _range(noun: str, lines: tuple[int, int]) -> str:
    return f"{noun} {lines[0]}" if lines[0] == lines[1] else f"{noun}s {lines[0]}-{lines[1]}"


_LEAST = 3


def fused_with(part: Portion, pair: CopyPair, finder: CopyFinder) -> Symbol | None:
    """The other upstream function whose body a change holds."""
    if part.base or not part.wanted:
        return None
    runs: list[Sequence[ast.stmt]] = [part.wanted]
    runs += [block.body for statement in part.wanted for block in blocks(statement)]
    large = [run for run in runs if sum(1 for s in run for n in ast.walk(s) if isinstance(n, ast.stmt)) > _LEAST]
    if not large:
        return None
    for dotted in finder.named(pair.symbol.name):
        symbol = finder.symbol(dotted)
        if not isinstance(symbol, Symbol) or symbol.node is pair.symbol.node or not isinstance(symbol.node, FUNCTION):
            continue
        body = [key(s) for s in finder.base(symbol).node.body]
        for run in large:
            keys = [key(s) for s in run]
            shared = sum(k in body for k in keys)
            if len(body) > 1 and shared >= 0.8 * len(body) and shared >= 0.8 * len(keys):
                return symbol
    return None


# ---- the head -------------------------------------------------------------------------------------------------------


HARMLESS = ("override", "wraps")
"""Decorators that a copy may have of its own."""


def _decorators(judged: Compared) -> Iterator[Finding]:
    pair, hand = judged.pair, judged.pair.hand
    name = f"upstream's {pair.symbol.qualname}"
    for message, help_ in _decorated_otherwise(pair, name):
        yield say("PK707", message, hand, upstream=pair.symbol.position, help=help_)


def _decorated_otherwise(pair: CopyPair, name: str) -> Iterator[tuple[str, str]]:
    """How a copy is decorated otherwise than upstream's function, each with what to do."""
    install = pair.install
    bound = [install.descriptor] if install is not None and install.descriptor else []
    seen = bool(pair.hand.classes) or install is not None  # what binds it is in sight
    theirs, ours = pair.base.named(method=seen), pair.wanted.named(method=True)
    known, has = [d.word for d in theirs], [*(d.word for d in ours), *bound]
    for one in dict.fromkeys(known):
        if one not in has:
            yield f"{name} is decorated with {one}, the copy is not", "Add it to the copy, or to the assignment."
    for one in dict.fromkeys(has):
        if one not in (*known, *HARMLESS):
            yield f"the copy is decorated with {one}, {name} is not", "Drop it, or say why in a comment."
    for old in theirs:
        same = [d for d in ours if d.word == old.word]
        if same and old.key not in {d.key for d in same}:
            yield (
                f"{name} is decorated with {old.text}, the copy with {same[0].text}",
                "Take upstream's, or say why in a comment.",
            )
    shared = {d.key for d in theirs} & {d.key for d in ours}
    if [d.key for d in theirs if d.key in shared] != [d.key for d in ours if d.key in shared]:
        order = f"Upstream has {', '.join(d.text for d in theirs)}."
        yield f"the decorators of {name} stand in another order in the copy", order


def signature_differences(judged: Compared, finder: CopyFinder) -> list[Difference]:
    """How the signature differs; names by where they lead, decorators left out."""
    pair = judged.pair
    old, new = judged.signatures
    theirs = FileNames(pair.symbol.file, finder.meaning)
    ours = FileNames(pair.hand.file.source, finder.meaning).within(pair.hand.functions)
    # `X = Any` where only type checkers see the import: such a name means what it is called
    unsure = {
        n for f in (pair.symbol.file, pair.hand.file.source) for n, b in module_bindings(f).items() if len(b.sites) > 1
    }
    found = compare(
        replace(old, decorators=()),
        replace(new, decorators=()),
        old_names=_led(pair.symbol.node, theirs, unsure),
        new_names=_led(pair.hand.node, ours, unsure),
    )
    return [d for d in found if d.change not in ("bases", "what")]


def _led(node: ast.AST, names: FileNames, unsure: Collection[str]) -> dict[str, str]:
    """Where the names in a head lead; the last part alone for those of modules that no pin has."""
    found: dict[str, str] = {}
    parts = [node.args, node.returns] if isinstance(node, FUNCTION) else []
    for part in (p for p in parts if p is not None):
        for inner in ast.walk(part):
            texts = [inner.id] if isinstance(inner, ast.Name) else []
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.isidentifier():
                texts.append(inner.value)
            for text in texts:
                found[text] = names.lead(text).dotted
    return {name: _standard(dotted) for name, dotted in found.items() if name not in unsure}


def _standard(dotted: str) -> str:
    """`typing.Callable` is `collections.abc.Callable`."""
    module, _, name = dotted.rpartition(".")
    return f"collections.abc.{name}" if module == "typing" and name[:1].isupper() and name in _ABC else dotted


_ABC = frozenset({"Callable", "Iterator", "Iterable", "Sequence", "Mapping", "Generator", "AsyncIterator", "AsyncGenerator",
                  "Awaitable", "Collection", "MutableMapping", "MutableSequence", "Set", "Hashable"})  # fmt: skip


def _signature(judged: Compared, finder: CopyFinder) -> Iterator[Finding]:
    pair, hand = judged.pair, judged.pair.hand
    differences = signature_differences(judged, finder)
    claims = hand.claims
    if not claims.claims_match:
        differences = [d for d in differences if d.change not in _SILENT]
        differences = [] if _fenced_head(judged) else differences
    if differences:
        claim = (
            "the comment above claims that the signature matches" if claims.claims_match else "the signature differs"
        )
        line = claims.line_of("signature") if claims.claims_match else 0
        yield say(
            "PK708",
            f"{claim}, and upstream's {pair.symbol.qualname} has another"
            if claims.claims_match
            else f"{claim} from {pair.symbol.reference}",
            hand,
            upstream=pair.symbol.position,
            details=(*(str(d) for d in differences), *((f"claimed in line {line}",) if line else ())),
            help="Take upstream's signature, or correct the comment."
            if claims.claims_match
            else "Take upstream's signature.",
        )
    names = {p.name for p in judged.signatures[1].parameters}
    for name in parameters_named(claims.text("signature")):
        if name not in names and name not in {p.name for p in judged.signatures[0].parameters}:
            yield say(
                "PK709",
                f"the comment names a parameter {name}, and the signature has none",
                hand,
                generated=hand.file.at(claims.line_of("signature")),
                help="Correct the comment.",
            )


def _fenced_head(judged: Compared) -> bool:
    hand = judged.pair.hand
    body = first_line(hand.node.body[0])
    return any(f.start < body for f in hand.fences)


# ---- fences ---------------------------------------------------------------------------------------------------------


def _wide(judged: Compared) -> Iterator[Finding]:
    hand = judged.pair.hand
    for fence in hand.fences:
        if fence.end is None or fence.stray:
            continue
        inside = _outermost(judged.pair.wanted, fence)
        if not inside:
            continue
        changed = {id(n) for part in judged.fenced for s in part.wanted for n in ast.walk(s)}
        equal = [s for s in inside if not _touched(s, changed, judged, fence)]
        gone = any(not p.wanted and p.fence is fence for p in judged.parts)
        if not equal or (gone and len(equal) < len(inside)):
            continue
        ends = [s for s in (inside[0], inside[-1]) if s in equal]
        if not ends:
            continue
        everything = len(equal) == len(inside)
        if everything and gone:
            continue
        lines = len({n for s in equal for n in range(first_line(origin(s)), last_line(origin(s)) + 1)})
        yield say(
            "PK704",
            f"nothing in fence {fence.name!r} differs from upstream"
            if everything
            else f"fence {fence.name!r} is wider than its change: {lines} lines at its ends are upstream's",
            hand,
            generated=hand.file.at(fence.start),
            help="Delete the fence, or say in it what was meant."
            if everything
            else "Move START or END to what differs.",
        )


def _outermost(wanted: Canonical, fence: HandFence) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    stack: list[ast.stmt] = list(wanted.node.body)[::-1]
    while stack:
        statement = stack.pop()
        node = origin(statement)
        if fence.holds(first_line(node), last_line(node)):
            found.append(statement)
        else:
            stack += [s for block in blocks(statement) for s in block.body][::-1]
    return found


def _touched(statement: ast.stmt, changed: set[int], judged: Compared, fence: HandFence) -> bool:
    if any(id(n) in changed for n in ast.walk(statement)):
        return True
    node = origin(statement)
    first, last = first_line(node), last_line(node)
    return any(p.fence is fence and not p.wanted and first <= p.lines[0] <= last for p in judged.parts)


# ---- what the body leans on -----------------------------------------------------------------------------------------


def _calls(pair: CopyPair, finder: CopyFinder) -> Iterator[Finding]:
    """Calls of upstream functions and of the class's own methods that upstream's function has not, and that do not fit."""
    known = {key(n) for n in ast.walk(pair.base.node) if isinstance(n, ast.Call)}
    first = pair.hand.node.args.args[0].arg if pair.hand.node.args.args and pair.symbol.classes else None
    for call in (n for n in ast.walk(pair.wanted.node) if isinstance(n, ast.Call)):
        if key(call) in known:
            continue
        found = _called(call.func, pair, finder, first)
        if found is None or changing(found.node, "parameters"):
            continue
        why = misfit(Shape.of(call), listed(found))
        if why is not None:
            yield say(
                "PK711",
                f"the call of {found.module}:{found.qualname} does not fit: {why}",
                pair.hand,
                generated=pair.hand.file.place(origin(call)),
                upstream=Position(found.file.path, found.node.lineno),
                help="Compare it with the pinned function's own call.",
            )


def _called(func: ast.expr, pair: CopyPair, finder: CopyFinder, first: str | None) -> Function | None:
    if isinstance(func, ast.Name) and "." in func.id:
        symbol = finder.symbol(func.id) if finder.meaning.has(func.id) else None
        return _function(symbol, bound=False) if isinstance(symbol, Symbol) and not symbol.classes else None
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == first and first:
        own = pair.hand.classes[-1] if pair.hand.classes else None
        if own is not None and any(isinstance(n, FUNCTION) and n.name == func.attr for n in own.body):
            return None  # ours
        owner = ".".join([pair.symbol.file.module, *(c.name for c in pair.symbol.classes)])
        symbol = finder.symbol(f"{owner}.{func.attr}")
        return _function(symbol, bound=True) if isinstance(symbol, Symbol) else None
    return None


def _function(symbol: Symbol, *, bound: bool) -> Function:
    nodes: tuple[FunctionNode, ...] = tuple(n for n in symbol.nodes if isinstance(n, FUNCTION))
    static = any(name.rpartition(".")[2] == "staticmethod" for _, name in decorator_names(nodes[-1]))
    return Function(symbol.file.module, symbol.qualname, symbol.file, nodes, None, "plain", bound and not static)


def _names(pair: CopyPair, finder: CopyFinder) -> Iterator[Finding]:
    """Names of upstream's modules that the copy reaches for and that are not there."""
    missing: dict[str, ast.AST] = {}
    for node in ast.walk(pair.wanted.node):
        if isinstance(node, ast.Name) and "." in node.id and finder.meaning.has(node.id) is False:
            missing.setdefault(node.id, node)
    for dotted, node in missing.items():
        yield say(
            "PK712",
            f"upstream has no {dotted}",
            pair.hand,
            generated=pair.hand.file.place(origin(node)),
            upstream=pair.symbol.position,
            help="It may have been renamed or moved; the pinned function says what it uses.",
        )
