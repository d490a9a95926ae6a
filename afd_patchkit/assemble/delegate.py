"""Delegates: upstream's signature around a body of our own that calls the original."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from afd_patchkit.delta.apply import Applied, apply_deltas
from afd_patchkit.delta.buffer import Buffer, indent_code
from afd_patchkit.fence import closing, parsed
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import finding
from afd_patchkit.model import Code, Entry
from afd_patchkit.names.model import ImportNeed
from afd_patchkit.source.locate import FunctionNode, Symbol, dotted
from afd_patchkit.source.text import Span, Text
from afd_patchkit.source.tokens import significant, tokens

ORIGINAL = "__original__"
# these decide how a method is called; all others are applied by the original that the delegate calls
_DESCRIPTORS = ("staticmethod", "classmethod", "property")


@dataclass(frozen=True, slots=True)
class Own:
    """Upstream bytes that a delegate has text of its own for; the text stands at upstream's indentation."""

    span: Span
    text: str


def delegate_text(
    entry: Entry, symbol: Symbol, group: str | None, ref: str, marker: str
) -> tuple[Buffer, Applied, tuple[ImportNeed, ...], tuple[Own, ...]]:
    """The delegate's text, dedented; its header deltas as applied; what its call of the original needs; what is its own.

    `__original__` in the body is the original; `__original__(...)`, with a literal `...`, forwards all parameters by
    name.

    Args:
        entry: the entry, with its `body`.
        symbol: the upstream function that it stands before.
        group: the class that it becomes a member of; None at module level.
        ref: the entry as findings call it.
        marker: what fences begin with.

    Raises:
        ManifestError: the symbol is no function, or `via: super` stands outside a class (PK019).
        DeltaError: a delta does not apply to the header.
    """
    node = symbol.node
    assert entry.body is not None
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise _error(entry, ref, f"{symbol.reference} is not a function")
    if entry.via == "super" and group is None:
        raise _error(entry, ref, "`via: super` needs a class: put the entry into a `class` group")
    applied = apply_deltas(symbol, entry.deltas, entry=ref, marker=marker)
    original, needs = _original(entry, symbol, node, group)
    body = _body(entry.body, original, node, bound=bool(symbol.classes))
    text, own = _with_body(applied.buffer, body, symbol, marker)
    return text, applied, needs, own


def _with_body(buffer: Buffer, body: str, symbol: Symbol, marker: str) -> tuple[Buffer, tuple[Own, ...]]:
    """The header of `buffer` around `body`; of upstream's decorators only those that make a descriptor stay."""
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
        if dotted(decorator) not in _DESCRIPTORS and _is_upstreams(buffer, plain, decorator):
            lines = plain.line_span(decorator.lineno, decorator.end_lineno or decorator.lineno)
            begin, end = (len(plain.data[:offset].decode()) for offset in (lines.start, lines.end))
            changes.append((begin, end, "", "owned"))
            inside = _upstream_offset(buffer, len(plain.data[: plain.node_span(decorator).start].decode()))
            sign = symbol.file.data.rindex(b"@", 0, inside)  # what a delta puts before the decorator stands before it
            own.append(Own(Span(sign, _upstream_offset(buffer, end - 1)), ""))
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


def _error(entry: Entry, ref: str, message: str) -> ManifestError:
    return ManifestError(finding("PK019", message, entry=ref, manifest=entry.where))


def _original(
    entry: Entry, symbol: Symbol, node: FunctionNode, group: str | None
) -> tuple[str, tuple[ImportNeed, ...]]:
    if entry.via == "super":
        first = _first_argument(node)
        kind = {dotted(d) for d in node.decorator_list}
        if "staticmethod" in kind or first is None:
            return f"super({group}, {group}).{symbol.name}", ()
        return f"super({group}, {first}).{symbol.name}", ()
    alias = "_" + symbol.file.module.replace(".", "_")
    return f"{alias}.{symbol.qualname}", (ImportNeed(symbol.file.module, None, alias),)


def _first_argument(node: FunctionNode) -> str | None:
    arguments = [*node.args.posonlyargs, *node.args.args]
    return arguments[0].arg if arguments else None


def _body(code: Code, original: str, node: FunctionNode, *, bound: bool) -> str:
    text = code.text.strip("\n").rstrip()
    plain = Text(text.encode())
    changes: list[tuple[Span, str]] = []
    forwards_self = original.startswith("super(")
    for call in ast.walk(ast.parse(text)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == ORIGINAL:
            literal = len(call.args) == 1 and not call.keywords and isinstance(call.args[0], ast.Constant)
            if literal and call.args[0].value is Ellipsis:  # type: ignore[attr-defined]
                arguments = _forwarded(node, skip_first=forwards_self and bound)
                changes.append((plain.node_span(call.args[0]), arguments))
        if isinstance(call, ast.Name) and call.id == ORIGINAL:
            changes.append((plain.node_span(call), original))
    data = plain.data
    for span, new in sorted(changes, reverse=True):
        data = data[: span.start] + new.encode() + data[span.end :]
    return data.decode()


def _forwarded(node: FunctionNode, *, skip_first: bool) -> str:
    """All parameters, by name where Python allows it."""
    positional = {a.arg for a in node.args.posonlyargs}
    static = any(dotted(d) == "staticmethod" for d in node.decorator_list)
    skip = 0 if static or not skip_first else 1
    out: list[str] = []
    plain = [a.arg for a in [*node.args.posonlyargs, *node.args.args]][skip:]
    for name in plain:
        # behind *args a keyword would meet the same parameter twice
        by_position = name in positional or node.args.vararg is not None
        out.append(name if by_position else f"{name}={name}")
    if node.args.vararg:
        out.append(f"*{node.args.vararg.arg}")
    out += [f"{a.arg}={a.arg}" for a in node.args.kwonlyargs]
    if node.args.kwarg:
        out.append(f"**{node.args.kwarg.arg}")
    return ", ".join(out)
