"""Delegates: upstream's signature around a body of our own that calls the original."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from afd_patchkit.assemble.entry import Own, Setting
from afd_patchkit.assemble.originals import (
    Original,
    Role,
    attributes,
    by_position,
    captured,
    class_path,
    home_of,
    implied,
    named,
    original,
    stays,
)
from afd_patchkit.delta.apply import Applied, apply_deltas
from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.fence import closing, parsed
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.model import Entry
from afd_patchkit.names.completions import attributes_set
from afd_patchkit.names.imports import LINE
from afd_patchkit.names.model import ImportNeed
from afd_patchkit.references.calls import Shape, listed, misfit
from afd_patchkit.references.things import Function
from afd_patchkit.runtime.loaded import CAPTURE
from afd_patchkit.source.forward import (
    Forwarded,
    ForwardError,
    arguments,
    between_parentheses,
    forwarding,
    mangled,
    receiver,
    unawaited,
    written_out,
)
from afd_patchkit.source.locate import ACCESSORS, FunctionNode, Symbol, dotted
from afd_patchkit.source.rows import indent_code
from afd_patchkit.source.syntax import FUNCTION
from afd_patchkit.source.text import Span, Text
from afd_patchkit.source.tokens import significant, tokens
from afd_patchkit.upstream.base import Upstream

ORIGINAL = "__original__"


_MAKES = (ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Lambda)
"""Expressions that give another object each time."""


@dataclass(frozen=True)
class Delegate:
    """A delegate as text.

    Attributes:
        buffer: the text, dedented.
        applied: its header deltas as applied.
        imports: what its call of the original needs.
        statements: what the module does for it when it is imported: it captures the original.
        own: what is its own of upstream's bytes.
        after: a statement to stand behind it; empty without.
        bound: names that the statements bind.
        findings: what does not stop generation.
    """

    buffer: Buffer
    applied: Applied
    imports: tuple[ImportNeed, ...]
    statements: tuple[str, ...]
    own: tuple[Own, ...]
    after: str
    bound: frozenset[str]
    findings: tuple[Finding, ...] = ()


def delegate_text(entry: Entry, symbol: Symbol, group: str | None, setting: Setting, target: Upstream) -> Delegate:
    """The text of a delegate.

    `__original__` in the body is the original, bound as `super()` would bind it; `__original__(...)`, with a literal `...`, or
    `__original__(__parameters__)` forwards all parameters by name.

    Args:
        entry: the entry, with its `body`.
        symbol: the upstream function that it stands before; of a property the accessor.
        group: the class that it becomes a member of; None at module level.
        setting: the module around the entry.
        target: the upstream that it runs on.

    Raises:
        ManifestError: the symbol is no function, `via: super` stands outside a class, or the body does not fit (PK027).
        DeltaError: a delta does not apply to the header.
    """
    node = symbol.node
    assert entry.body is not None
    assert entry.via is not None
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise _error(entry, setting.entry, f"{symbol.reference} is not a function")
    if entry.via == "super" and group is None:
        raise _error(entry, setting.entry, "`via: super` needs a class: put the entry into a `class` group")
    home = home_of(symbol, target)
    applied = apply_deltas(symbol, entry.deltas, entry=setting.entry, marker=setting.marker)
    kept = f"_original{home.bound}_{symbol.qualname.replace('.', '_')}"
    reached = original(symbol, entry.via, group, kept)
    tree = ast.parse(entry.body.text.strip("\n").rstrip())
    _check(entry, setting.entry, symbol, tree)
    findings = tuple(_dropped(entry, symbol, tree))
    body = _body(entry, setting.entry, reached, symbol)
    accessor = _other_accessors(symbol, kept)
    text, own = _with_body(
        applied.buffer,
        body,
        symbol,
        setting.marker,
        accessor,
        "" if group else implied(symbol),
        yields=_yields(tree.body),
    )
    carried = (*attributes(symbol), *attributes_set(symbol)) if entry.via == "original" else ()
    if reached.ending == "value" or reached.role in ("cached", "setter", "deleter"):
        carried = ()
    after = _carried(mangled(entry.name or symbol.name, _private(symbol) if group else None), kept, carried)
    owner = ".".join([home.bound, *class_path(symbol)])
    name = mangled(symbol.name, _private(symbol))
    after += _same_defaults(
        entry, symbol, reached.role, mangled(entry.name or symbol.name, _private(symbol) if group else None), kept
    )
    if group is None:
        after += named(symbol, entry.name or symbol.name, target)[0]
    if not (accessor or after or re.search(rf"\b{kept}\b", body)):
        return Delegate(text, applied, (), (), own, "", frozenset(), findings)
    given = f'{owner}, "{name}", "{kept}"'
    capture = f"{kept} = {CAPTURE}({given})"
    if len(capture) > LINE:
        capture = f"{kept} = {CAPTURE}(\n    {given}\n)"
    return Delegate(
        text,
        applied,
        (home, ImportNeed("functools"), ImportNeed("inspect")),
        (captured(setting.package), capture),
        own,
        after,
        frozenset({kept, CAPTURE, home.bound, "functools", "inspect"}),
        findings,
    )


def _same_defaults(entry: Entry, symbol: Symbol, role: Role, name: str, kept: str) -> str:
    """A statement that gives a delegate the original's own default values, where writing them again makes others; else empty."""
    node = symbol.node
    assert isinstance(node, FUNCTION)
    given = [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]
    fresh = any(isinstance(n, _MAKES) for d in given for n in ast.walk(d))
    changed = any(delta.parameter is not None for delta in entry.deltas)
    decorated = [d for d in node.decorator_list if not stays(symbol, d, yields=False)]
    if not fresh or changed or decorated or role not in ("function", "method", "class", "static"):
        return ""
    own, theirs = (name, kept) if role in ("function", "method") else (f"{name}.__func__", f"{kept}.__func__")
    return "".join(f"{own}.{part} = {theirs}.{part}\n" for part in ("__defaults__", "__kwdefaults__"))


def _carried(name: str, kept: str, names: Sequence[str]) -> str:
    """A statement that gives a delegate the attributes that callers of its original use."""
    if not names:
        return ""
    return f"{', '.join(f'{name}.{n}' for n in names)} = {', '.join(f'{kept}.{n}' for n in names)}\n"


def _private(symbol: Symbol) -> str | None:
    return symbol.classes[-1].name if symbol.classes else None


def _other_accessors(symbol: Symbol, kept: str) -> str:
    """The decorator that leaves the other accessors of a property as they are; empty where there are none."""
    last = [dotted(d).rpartition(".")[2] for d in symbol.node.decorator_list]  # type: ignore[union-attr]
    word = next((w for w in last if w in ACCESSORS), None)
    if word is None and not symbol.beside:
        return ""
    return f"@{kept}.{word or 'getter'}"


def _with_body(
    buffer: Buffer, body: str, symbol: Symbol, marker: str, accessor: str, more: str, *, yields: bool
) -> tuple[Buffer, tuple[Own, ...]]:
    """The header of `buffer` around `body`; of upstream's decorators only those that say how it is called stay.

    Args:
        buffer: upstream's text with header deltas.
        body: the delegate's own.
        symbol: the original.
        marker: what fences begin with.
        accessor: the decorator that takes the place of that of a property; empty where none does.
        more: a decorator to add; empty for none.
        yields: whether the body does.
    """
    text = buffer.text
    plain = Text(text.encode())
    node = ast.parse(text).body[-1]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    first = node.body[0]
    start = plain.offset(min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))]))
    header = significant(tokens(plain, node.lineno, max(node.lineno, plain.line_of(start))))
    limit = plain.node_span(first).start
    colon = [t.span.end for t in header if t.text == ":" and t.span.end <= limit][-1]
    at = len(plain.data[:colon].decode())
    changes = [(at, len(text), "\n" + _open_fences(buffer, at, marker) + indent_code(body, "    ") + "\n", "owned")]
    placed = "\n" + indent_code(body, symbol.indent + "    ") + "\n"
    own = [Own(Span(_upstream_offset(buffer, at - 1) + 1, symbol.spans[-1].end), placed)]
    for decorator in node.decorator_list:
        if not _is_upstreams(buffer, plain, decorator):
            continue
        stay = stays(symbol, decorator, yields=yields)
        if stay and not accessor:
            continue
        lines = plain.line_span(decorator.lineno, decorator.end_lineno or decorator.lineno)
        begin, end = (len(plain.data[:offset].decode()) for offset in (lines.start, lines.end))
        changes.append((begin, end, f"{accessor}\n" if stay else "", "owned"))
        inside = _upstream_offset(buffer, len(plain.data[: plain.node_span(decorator).start].decode()))
        sign = symbol.file.data.rindex(b"@", 0, inside)  # what a delta puts before the decorator stands before it
        own.append(Own(Span(sign, _upstream_offset(buffer, end - 1)), accessor if stay else ""))
    if more:  # below what deltas put above the function
        line = plain.line_span(node.lineno, node.lineno).start
        begin = len(plain.data[:line].decode())
        changes.append((begin, begin, f"{more}\n", "owned"))
        place = _upstream_offset(buffer, begin)
        own.append(Own(Span(place, place), f"{more}\n{symbol.indent}"))
    return buffer.replace(sorted(changes)), tuple(own)


def _open_fences(buffer: Buffer, at: int, marker: str) -> str:
    """The end lines of fences that stand open at character `at`: they stood below the header."""
    opened: list[str] = []
    for start, run in buffer.positioned():
        if start < at and run.label == "fence":
            for line in run.text.splitlines():
                end, name = parsed(line, marker) or ("END", "")
                if end == "START":
                    opened.append(line[: len(line) - len(line.lstrip())] + closing(name, marker))
                elif opened:
                    opened.pop()
    return "".join(line + "\n" for line in reversed(opened))


def _upstream_offset(buffer: Buffer, at: int) -> int:
    """The offset in the upstream file of character `at`, which is verbatim."""
    for start, run in buffer.positioned():
        if run.file is not None and start <= at < start + len(run.text):
            return run.part(at - start, len(run.text)).start
    raise AssertionError("the character is not upstream's")


def _is_upstreams(buffer: Buffer, plain: Text, node: ast.expr) -> bool:
    """Whether an expression of the text is verbatim from upstream (and not what a delta added)."""
    start = len(plain.data[: plain.node_span(node).start].decode())
    return any(run.file is not None and at <= start < at + len(run.text) for at, run in buffer.positioned())


def _error(entry: Entry, ref: str, message: str, at: Position | None = None, help: str | None = None) -> ManifestError:
    return ManifestError(finding("PK027", message, entry=ref, manifest=at or entry.where, help=help))


# ---- the body ---------------------------------------------------------------------------------------------------------


def _yields(body: Sequence[ast.stmt]) -> bool:
    """Whether statements make the function around them a generator."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack += ast.iter_child_nodes(node)
    return False


def _check(entry: Entry, ref: str, symbol: Symbol, tree: ast.Module) -> None:
    """Whether calling the delegate gives what calling the original gives: a value, a coroutine, a generator."""
    node = symbol.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    assert entry.body is not None
    yields, asynchronous = _yields(tree.body), isinstance(node, ast.AsyncFunctionDef)
    generates = _yields(node.body)
    where = entry.body.position
    if yields and not generates:
        raise _error(entry, ref, f"the body yields, and {symbol.reference} is no generator", where)
    if asynchronous and generates and not yields:
        raise _error(
            entry, ref, f"{symbol.reference} is an asynchronous generator, and the body does not yield", where,
            "Write `async for item in __original__(...): yield item`, or `async with` and `yield` for a context manager.",
        )  # fmt: skip


def _dropped(entry: Entry, symbol: Symbol, tree: ast.Module) -> Iterator[Finding]:
    """Calls of an asynchronous original whose result nobody awaits."""
    node = symbol.node
    assert entry.body is not None
    if isinstance(node, ast.AsyncFunctionDef) and not _yields(node.body):
        for call in unawaited(tree, ORIGINAL):
            yield finding(
                "PK333",
                f"{symbol.reference} is asynchronous, and the body does not await what `{ORIGINAL}` gives",
                manifest=entry.body.at(call.lineno, call.col_offset + 1),
                upstream=symbol.position,
                help=f"Write `await {ORIGINAL}(...)`.",
            )


def _body(entry: Entry, ref: str, reached: Original, symbol: Symbol) -> str:
    """The body with the original written out."""
    assert entry.body is not None
    node = symbol.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    bound = reached.role not in ("function", "static")
    parameters = Forwarded.of(
        node, bound=bound and reached.role != "new", private=_private(symbol), first=by_position(symbol, reached.role)
    )
    text = entry.body.text.strip("\n").rstrip()
    plain = Text(text.encode())
    tree = ast.parse(text)
    changes: list[tuple[Span, str]] = []
    calls = {id(n.func): n for n in ast.walk(tree) if isinstance(n, ast.Call)}
    try:
        for name in ast.walk(tree):
            if not isinstance(name, ast.Name) or name.id != ORIGINAL:
                continue
            call = calls.get(id(name))
            if call is None:
                changes.append((plain.node_span(name), reached.plain))
                continue
            changes.append((plain.node_span(name), reached.called))
            inside = between_parentheses(call, plain)
            if forwarding(call, dots=True):
                changes.append((inside, arguments(call, plain, parameters, dots=True, first=reached.first)))
            else:
                _explicit(call, plain, reached, node, changes)
            if reached.ending == "value":
                whole = plain.node_span(call)
                changes = [c for c in changes if not whole.contains(c[0])]
                changes.append((whole, reached.called))
        data = plain.data
        for span, new in sorted(changes, reverse=True):
            data = data[: span.start] + new.encode() + data[span.end :]
        own = Forwarded.of(node, bound=bound, private=_private(symbol))
        return written_out(data.decode(), own)
    except ForwardError as error:
        where = entry.body.at(error.line, error.column + 1)
        raise ManifestError(finding("PK227", error.message, entry=ref, manifest=where)) from error


def _explicit(
    call: ast.Call, plain: Text, reached: Original, node: FunctionNode, changes: list[tuple[Span, str]]
) -> None:
    """A call that writes its arguments; the object that the original is bound to may stand among them or not."""
    me = receiver(node)
    told = bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id == me
    if reached.role in ("function", "static", "new"):
        return
    if told and _must_be_receiver(call, node):
        if reached.first:
            return
        second = [*call.args[1:], *call.keywords]
        inside = between_parentheses(call, plain)
        start = plain.node_span(call.args[0]).start
        changes.append((Span(start, plain.node_span(second[0]).start if second else inside.end), ""))
    elif reached.first:
        inside = between_parentheses(call, plain)
        more = ", " if call.args or call.keywords else ""
        changes.append((Span(inside.start, inside.start), f"{reached.first}{more}"))


def _must_be_receiver(call: ast.Call, node: FunctionNode) -> bool:
    """Whether the first argument is the object itself: the parameter behind it may take the object, too.

    Raises:
        ForwardError: both would bind.
    """
    takes = listed(Function("", "", None, (node,), bound=True))  # type: ignore[arg-type]  # only the statement is looked at
    shape = Shape.of(call)
    with_it, without = (misfit(s, takes) is None for s in (shape, replace(shape, positional=shape.positional - 1)))
    if with_it and without:
        raise ForwardError(
            f"`{ORIGINAL}` is bound already, and the first argument may be that object or the next parameter: leave it out, or "
            "give it by name",
            call,
        )
    return not with_it
