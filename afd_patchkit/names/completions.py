"""What completes a definition elsewhere in its module: statements that rebind, extend, register or delete it, or set its attributes.

A copy of the definition alone lacks them. Statements are told apart by what they act on, a dotted name as the module has it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from afd_patchkit.digests import short
from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import Finding, Severity, finding
from afd_patchkit.names.follow import resolve_dotted
from afd_patchkit.source.locate import ACCESSORS, Symbol, dotted, first_line
from afd_patchkit.source.syntax import (
    DEFINITION,
    FUNCTION,
    blocks,
    bound_names,
    typing_block,
)
from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.source.tokens import significant, tokens_in
from afd_patchkit.upstream.base import Upstream

How = Literal["rebound", "extended", "attribute", "deleted", "registered", "passed", "at run time", "rewritten"]

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

_MUTATORS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "update",
        "setdefault",
        "add",
        "remove",
        "discard",
        "pop",
        "popitem",
        "clear",
        "sort",
        "reverse",
        "appendleft",
        "extendleft",
        "register",
    ]
)
_HARMLESS_CALLS = frozenset({"print", "debug", "info", "warning", "error", "exception", "critical", "log", "warn"})
_PLAIN_CLASS_DECORATORS = frozenset(
    {"dataclass", "total_ordering", "final", "runtime_checkable", "unique", "deprecated"}
)
_PLAIN_METACLASSES = frozenset({"ABCMeta", "EnumMeta", "EnumType", "type"})


@dataclass(frozen=True, slots=True)
class Touch:
    """One statement that acts on something that the module defines.

    Attributes:
        subject: what it acts on: a dotted name.
        how: what it does.
        node: the statement, or the decorator.
        branch: the blocks that it stands in, each with its statement's line and its number there.
        span: the bytes that say it.
        file: the file that it stands in; None for that of the definition.
    """

    subject: str
    how: How
    node: ast.AST
    branch: tuple[tuple[int, int], ...]
    span: Span
    file: SourceFile | None = None


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
    """What completes a symbol elsewhere in its file, in the order of the text.

    Args:
        symbol: the definition.
        upstream: where decorators of its class are looked up; None to go by their names.
    """
    file = symbol.file
    found = [t for t in _touches(file).get(symbol.qualname, ()) if _counts(t, symbol)]
    found += _class_wide(symbol, upstream)
    made = (_completion(touch.file or file, touch) for touch in sorted(found, key=lambda t: t.span))
    return tuple(dict.fromkeys(made))


def _completion(file: SourceFile, touch: Touch) -> Completion:
    text = " ".join(t.text for t in significant(tokens_in(file, touch.span)))
    line = file.line_of(touch.span.start)
    return Completion(touch.how, file.path, line, file.lines(line, line)[0].strip()[:100], short(text))


def attributes_set(symbol: Symbol) -> tuple[str, ...]:
    """Attributes that statements of its module set on a definition."""
    start = f"{symbol.qualname}."
    names = [
        name.removeprefix(start)
        for name, touches in _touches(symbol.file).items()
        if name.startswith(start) and any(t.how in ("rebound", "extended") for t in touches)
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
    mine = next((t.branch for t in _touches(symbol.file).get(symbol.qualname, ()) if t.node is symbol.node), ())
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


# ---- the statements of a file ---------------------------------------------------------------------------------------


def _touches(file: SourceFile) -> dict[str, list[Touch]]:
    known: dict[str, list[Touch]] | None = file.__dict__.get("_completions")
    if known is None:
        known = {}
        for touch in _Walk(file).found:
            known.setdefault(touch.subject, []).append(touch)
        file.__dict__["_completions"] = known
    return known


class _Walk:
    """Collects what the statements of a file act on."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.found: list[Touch] = []
        self.prefix = ""
        self.members: frozenset[str] = frozenset()
        self.branch: tuple[tuple[int, int], ...] = ()
        self.called = False
        """Whether the statements are those of a function, which run when it is called."""
        self.body(file.tree.body)

    def add(self, subject: str, how: How, node: ast.AST, span: Span | None = None) -> None:
        head = subject.partition(".")[0]
        if head in self.members:
            subject = f"{self.prefix}.{subject}"
        self.found.append(Touch(subject, how, node, self.branch, span or self.file.node_span(node)))

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            if isinstance(node, DEFINITION):
                self.definition(node)
                continue
            self.statement(node)
            hidden = typing_block(node.test) if isinstance(node, ast.If) else None
            if isinstance(node, ast.If) and _main(node.test):
                hidden = "body"
            before = self.branch
            for number, block in enumerate(blocks(node)):
                if block.name != hidden:
                    # what follows `else:` of a loop or `try` runs after its body
                    alternative = (
                        number if isinstance(node, (ast.If, ast.Match)) or block.name.startswith("handlers") else 0
                    )
                    self.branch = (*before, (node.lineno, alternative))
                    self.body(block.body)
            self.branch = before

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        start = self.file.offset(first_line(node))
        header = Span(start, self.file.node_span(node.body[0]).start)
        for decorator in node.decorator_list:
            plain = decorator
            while isinstance(plain, ast.Call):
                plain = plain.func
            if isinstance(plain, ast.Attribute) and plain.attr not in ACCESSORS and (chain := dotted(plain.value)):
                self.add(chain, "registered", node, Span(self.file.node_span(decorator).start, header.end))
        self.add(node.name, "rebound", node, header)
        if isinstance(node, FUNCTION):
            self.function(node)
            return
        outer = self.prefix, self.members
        self.prefix = f"{self.prefix}.{node.name}" if self.prefix else node.name
        self.members = frozenset(_bound_in(node.body))
        self.body(node.body)
        self.prefix, self.members = outer

    # ---- statements ---------------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            if node.value is None:
                return
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self.target(target, node, "extended" if isinstance(node, ast.AugAssign) else "rebound")
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self.target(target, node, "deleted")
        elif not isinstance(node, ast.Expr):
            for name in bound_names(node):
                self.add(name, "rebound", node, self.file.line_span(node.lineno, node.lineno))
        calls = [n for child in _own_expressions(node) for n in ast.walk(child) if isinstance(n, ast.Call)]
        for call in calls:
            self.call(call, node, dropped=isinstance(node, ast.Expr) and node.value is call)
        for child in _own_expressions(node):
            for inner in ast.walk(child):
                if isinstance(inner, ast.NamedExpr):
                    self.add(inner.target.id, "rebound", node, self.file.node_span(inner))

    def target(self, target: ast.expr, node: ast.stmt, how: How) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self.target(item, node, how)
        elif isinstance(target, ast.Starred):
            self.target(target.value, node, how)
        elif isinstance(target, ast.Subscript):
            if chain := _root(target.value):
                self.add(chain, "extended", node)
        elif chain := dotted(target):
            self.add(chain, how, node)
            if isinstance(target, ast.Attribute):
                self.add(dotted(target.value), "attribute", node)
        elif isinstance(target, ast.Attribute) and (chain := _root(target.value)):
            self.add(chain, "extended", node)

    def call(self, call: ast.Call, node: ast.stmt, *, dropped: bool) -> None:
        func = call.func
        while isinstance(func, ast.Call):
            func = func.func
        name = dotted(func)
        last = func.attr if isinstance(func, ast.Attribute) else name
        if name in ("setattr", "delattr") and call.args and (chain := dotted(call.args[0])):
            self.add(chain, "attribute", node)
            named = call.args[1] if len(call.args) > 1 else None
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                self.add(f"{chain}.{named.value}", "rebound" if name == "setattr" else "deleted", node)
            return
        if last.removesuffix("_once") in _HARMLESS_CALLS:
            return
        acts = last in _MUTATORS or (dropped and not self.called)
        if acts and isinstance(func, ast.Attribute) and (chain := _root(func.value)):
            self.add(chain, "registered" if "register" in last else "extended", node)
        if dropped:
            given = [*call.args, *(k.value for k in call.keywords)]
            for chain in dict.fromkeys(c for a in given if (c := dotted(a))):
                self.add(chain, "passed", node)

    # ---- functions ----------------------------------------------------------------------------------------------

    def function(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """What a function does to globals when it is called."""
        inner = list(ast.walk(function))
        declared = {name for n in inner if isinstance(n, ast.Global) for name in n.names}
        local = {n.arg for n in inner if isinstance(n, ast.arg)}
        local |= {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - declared
        outer, self.found = self.found, []
        members, self.members = self.members, frozenset()
        self.called = True
        for node in inner:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Expr)):
                self.statement(node)
        for touch in self.found:
            head, _, rest = touch.subject.partition(".")
            plain = not rest and touch.how in ("rebound", "deleted")
            if head not in local and touch.how != "passed" and (not plain or head in declared):
                outer.append(Touch(touch.subject, "at run time", touch.node, (), touch.span))
        self.found, self.members, self.called = outer, members, False


def _bound_in(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        yield from bound_names(node)
        if not isinstance(node, DEFINITION):
            for block in blocks(node):
                yield from _bound_in(block.body)


def _own_expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, those in its blocks left out."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield child


def _root(node: ast.expr) -> str:
    """The dotted name that an object is taken from: of `A["x"]` and `A.get("x")` it is `A`."""
    while not dotted(node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        else:
            return ""
    return dotted(node)


def _main(test: ast.expr) -> bool:
    """Whether a test is `__name__ == "__main__"`."""
    return isinstance(test, ast.Compare) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(test))
