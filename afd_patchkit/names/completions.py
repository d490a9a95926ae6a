"""What completes a definition elsewhere: statements that rebind, extend, register or delete it, or set its attributes.

A copy of the definition alone lacks them. Statements are told apart by what they act on, a dotted name as the module has it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.digests import short
from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import Finding, Severity, finding
from afd_patchkit.names.elsewhere import acts_elsewhere
from afd_patchkit.names.follow import resolve_dotted
from afd_patchkit.names.touches import How, Touch, acting, touches
from afd_patchkit.source.locate import Symbol, dotted
from afd_patchkit.source.syntax import FUNCTION
from afd_patchkit.source.text import SourceFile
from afd_patchkit.source.tokens import significant, tokens_in
from afd_patchkit.upstream.base import Upstream, module_table

WORDS: dict[How, str] = {
    "rebound": "binds the name again",
    "extended": "extends it",
    "attribute": "sets an attribute of it",
    "deleted": "deletes it",
    "registered": "registers something with it",
    "passed": "hands it to a call",
    "at run time": "changes it while the program runs",
    "rewritten": "may rewrite the members of its class",
}
MILD: frozenset[How] = frozenset({"passed", "at run time", "rewritten"})
"""What says nothing certain about the definition itself."""

_PLAIN_CLASS_DECORATORS = frozenset(
    {"dataclass", "total_ordering", "final", "runtime_checkable", "unique", "deprecated"}
)
_PLAIN_METACLASSES = frozenset({"ABCMeta", "EnumMeta", "EnumType", "type"})


@dataclass(frozen=True, slots=True)
class Completion:
    """A statement elsewhere that completes a definition.

    Attributes:
        how: what it does.
        path: the file that it stands in.
        line: its 1-based line.
        text: its first line.
        digest: digest of its code, layout aside.
    """

    how: How
    path: str
    line: int
    text: str
    digest: str


def completions(symbol: Symbol, upstream: Upstream | None = None) -> tuple[Completion, ...]:
    """What completes a symbol elsewhere: in its file, in the order of the text, and in other modules.

    Args:
        symbol: the definition.
        upstream: where decorators of its class are looked up, and other modules; None for its own file alone.
    """
    file = symbol.file
    found = acting((t for t in touches(file).get(symbol.qualname, ()) if _counts(t, symbol)), symbol.node)
    found += _class_wide(symbol, upstream)
    made = (_completion(touch.file or file, touch) for touch in sorted(found, key=lambda t: t.span))
    return tuple(dict.fromkeys((*made, *_from_other_modules(symbol, upstream))))


def _from_other_modules(symbol: Symbol, upstream: Upstream | None) -> Iterator[Completion]:
    """What other modules of the tree do to a symbol."""
    for how, path, line, digest in acts_elsewhere(upstream, symbol.reference) if upstream is not None else ():
        lines = upstream.read(next(iter(module_table([path])))).lines(line, line) if upstream is not None else [""]
        yield Completion(how, path, line, lines[0].strip()[:100], digest)


def _completion(file: SourceFile, touch: Touch) -> Completion:
    text = " ".join(t.text for t in significant(tokens_in(file, touch.span)))
    line = file.line_of(touch.span.start)
    return Completion(touch.how, file.path, line, file.lines(line, line)[0].strip()[:100], short(text))


def attributes_set(symbol: Symbol) -> tuple[str, ...]:
    """Attributes that statements of its module set on a definition."""
    start = f"{symbol.qualname}."
    names = [
        name.removeprefix(start)
        for name, acts in touches(symbol.file).items()
        if name.startswith(start) and any(t.how in ("rebound", "extended") for t in acts)
    ]
    return tuple(sorted(name for name in names if "." not in name and not name.startswith("__")))


def incomplete(symbol: Symbol, found: Sequence[Completion], *, explained: bool) -> Iterator[Finding]:
    """Findings about what a copy lacks of its definition.

    Args:
        symbol: the definition that is copied.
        found: what completes it.
        explained: the manifest says why that is right.
    """
    for code, some in (
        ("PK334", [c for c in found if c.how not in MILD]),
        ("PK636", [c for c in found if c.how in MILD]),
    ):
        if some:
            words = ", ".join(dict.fromkeys(WORDS[c.how] for c in some))
            yield finding(
                code,
                f"a statement elsewhere {words}: the copy of {symbol.reference} has nothing of that",
                severity=Severity.NOTE if explained else None,
                upstream=symbol.position,
                details=places(some),
                help="Do the same for the copy (an owned part can), or say in `elsewhere:` why it needs none of it.",
            )


def places(found: Iterable[Completion]) -> tuple[str, ...]:
    """Where completions stand, a line each."""
    return tuple(f"{c.path}:{c.line}: {c.text}" for c in found)


def recorded(found: Iterable[Completion]) -> dict[str, list[str]]:
    """What the lock keeps of completions: their digests by what they do."""
    out: dict[str, list[str]] = {}
    for one in found:
        out.setdefault(one.how, []).append(one.digest)
    return {how: sorted(digests) for how, digests in sorted(out.items())}


def _counts(touch: Touch, symbol: Symbol) -> bool:
    """Whether a statement is none of the symbol's own, and may act on it."""
    spans = symbol.spans
    if any(span.start <= touch.span.start < span.end for span in spans):
        return False
    if any(touch.node is node for node in (*symbol.nodes, *symbol.beside)):
        return False
    if touch.how == "rebound" and touch.span.start < spans[0].start:
        return False
    mine = next((t.branch for t in touches(symbol.file).get(symbol.qualname, ()) if t.node is symbol.node), ())
    return not any(
        line == other and number != there for (line, number), (other, there) in zip(mine, touch.branch, strict=False)
    )


def _class_wide(symbol: Symbol, upstream: Upstream | None) -> Iterator[Touch]:
    """What may rewrite a member with its class: decorators, a metaclass of its own or inherited, `__init_subclass__` of bases."""
    if not symbol.classes:
        return
    cls = symbol.classes[-1]
    for decorator in cls.decorator_list:
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        last = name.rpartition(".")[2]
        if (
            last not in _PLAIN_CLASS_DECORATORS
            and "register" not in last
            and not _makes_dataclass(symbol, name, upstream)
        ):
            yield Touch(symbol.qualname, "rewritten", decorator, (), symbol.file.node_span(decorator))
    yield from _metaclass(symbol.qualname, symbol.file, cls)
    if upstream is not None:
        yield from _inherited(symbol.qualname, symbol.file, cls, upstream, set())


def _metaclass(subject: str, file: SourceFile, cls: ast.ClassDef) -> Iterator[Touch]:
    for keyword in cls.keywords:
        if keyword.arg == "metaclass" and dotted(keyword.value).rpartition(".")[2] not in _PLAIN_METACLASSES:
            yield Touch(subject, "rewritten", keyword, (), file.node_span(keyword), file)


def _inherited(
    subject: str, file: SourceFile, cls: ast.ClassDef, upstream: Upstream, seen: set[str]
) -> Iterator[Touch]:
    """What the bases of a class, as far as they stand in the tree, do to every class below them."""
    for base in cls.bases:
        name = dotted(base.value if isinstance(base, ast.Subscript) else base)
        try:
            found = resolve_dotted(upstream, file, name) if name else None
        except UpstreamError:  # nobody can say what it does
            continue
        if found is None or found.file is None or not isinstance(found.node, ast.ClassDef) or found.reference in seen:
            continue
        seen.add(found.reference)
        yield from _metaclass(subject, found.file, found.node)
        for member in found.node.body:
            if isinstance(member, FUNCTION) and member.name == "__init_subclass__":
                yield Touch(subject, "rewritten", member, (), found.file.node_span(member), found.file)
        yield from _inherited(subject, found.file, found.node, upstream, seen)


def _makes_dataclass(symbol: Symbol, decorator: str, upstream: Upstream | None) -> bool:
    """Whether a decorator of the tree says that it makes dataclasses."""
    found = resolve_dotted(upstream, symbol.file, decorator) if upstream is not None and decorator else None
    marks: list[ast.expr] = getattr(found.node, "decorator_list", []) if found is not None else []
    return any(dotted(m.func if isinstance(m, ast.Call) else m).endswith("dataclass_transform") for m in marks)
